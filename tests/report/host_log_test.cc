#include "vmm/timeline/host_log.h"

#include <gtest/gtest.h>

#include <thread>

namespace sipi {
namespace {

using abi::TraceEvent;

TEST(HostLog, KeepsEventsInOrderWithRisingTimes) {
  HostLog log(4);
  log.Emit(TraceEvent::kThreadStarted);
  log.Emit(TraceEvent::kIpiSent, 5, 0x4500);
  ASSERT_EQ(log.records().size(), 2u);
  EXPECT_EQ(log.records()[0].event, TraceEvent::kThreadStarted);
  EXPECT_EQ(log.records()[1].event, TraceEvent::kIpiSent);
  EXPECT_EQ(log.records()[1].target, 5);
  EXPECT_EQ(log.records()[1].value, 0x4500u);
  EXPECT_LE(log.records()[0].tsc, log.records()[1].tsc);
}

TEST(HostLog, CountsWhatDoesNotFitAndKeepsTheFirst) {
  HostLog log(2);
  for (uint32_t i = 0; i < 5; ++i) log.Emit(TraceEvent::kScenario, 0, i);
  EXPECT_EQ(log.lost(), 3u);
  ASSERT_EQ(log.records().size(), 2u);
  EXPECT_EQ(log.records()[1].value, 1u);
}

TEST(HostLog, OfNoCapacityLosesEverything) {
  HostLog log(0);
  log.Emit(TraceEvent::kRunEnd);
  EXPECT_TRUE(log.records().empty());
  EXPECT_EQ(log.lost(), 1u);
}

TEST(HostLog, ReaderOfAnotherThreadSeesAWholePrefix) {
  constexpr uint32_t kCount = 20'000;
  HostLog log(kCount);
  std::thread writer([&log] {
    for (uint32_t i = 0; i < kCount; ++i) log.Emit(TraceEvent::kScenario, 1, i);
  });
  size_t seen = 0;
  while (seen < kCount) {
    const auto records = log.records();
    ASSERT_GE(records.size(), seen);
    for (; seen < records.size(); ++seen) ASSERT_EQ(records[seen].value, seen);
  }
  writer.join();
  EXPECT_EQ(log.lost(), 0u);
}

}  // namespace
}  // namespace sipi
