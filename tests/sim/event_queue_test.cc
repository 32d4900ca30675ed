#include "guest/platform/sim/event_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "guest/platform/sim/random.h"

namespace sipi::sim {
namespace {

TEST(EventQueue, EventsOfOneTimeComeInTheOrderInWhichTheyWereSet) {
  EventQueue queue(4);
  queue.Set(2, 10);
  queue.Set(0, 10);
  queue.Set(3, 5);
  queue.Set(1, 10);
  EXPECT_EQ(queue.NextTime(), 5u);
  EXPECT_EQ(queue.Pop(), 3u);
  EXPECT_EQ(queue.Pop(), 2u);
  EXPECT_EQ(queue.Pop(), 0u);
  EXPECT_EQ(queue.Pop(), 1u);
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.NextTime(), EventQueue::kNever);
}

TEST(EventQueue, SettingAgainMovesAnEventAndPutsItBehindItsEquals) {
  EventQueue queue(3);
  queue.Set(0, 7);
  queue.Set(1, 7);
  queue.Set(0, 7);
  queue.Set(2, 1);
  queue.Set(2, 9);
  EXPECT_EQ(queue.Pop(), 1u);
  EXPECT_EQ(queue.Pop(), 0u);
  EXPECT_EQ(queue.NextTime(), 9u);
  queue.Cancel(2);
  queue.Cancel(2);
  EXPECT_TRUE(queue.empty());
}

TEST(EventQueue, AgreesWithASortedListUnderRandomUse) {
  struct Entry {
    uint64_t time;
    uint64_t order;
    uint32_t slot;
  };
  constexpr uint32_t kSlots = 200;
  Random random(7, 0);
  EventQueue queue(kSlots);
  std::vector<Entry> model;
  const auto erase = [&model](uint32_t slot) {
    std::erase_if(model, [slot](const Entry& e) { return e.slot == slot; });
  };
  for (uint64_t step = 0; step < 20'000; ++step) {
    const auto slot = static_cast<uint32_t>(random.Below(kSlots));
    switch (random.Below(3)) {
      case 0: {
        const uint64_t time = random.Below(50);
        queue.Set(slot, time);
        erase(slot);
        model.push_back({time, step, slot});
        break;
      }
      case 1:
        queue.Cancel(slot);
        erase(slot);
        break;
      default: {
        ASSERT_EQ(queue.empty(), model.empty());
        if (model.empty()) break;
        const auto next =
            std::min_element(model.begin(), model.end(), [](const Entry& a, const Entry& b) {
              return a.time != b.time ? a.time < b.time : a.order < b.order;
            });
        ASSERT_EQ(queue.NextTime(), next->time);
        ASSERT_EQ(queue.Pop(), next->slot);
        erase(next->slot);
      }
    }
  }
}

}  // namespace
}  // namespace sipi::sim
