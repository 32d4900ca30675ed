// Sequence numbers: a snapshot is done after a full grace period and not before, across the wrap
// too.
#include "guest/kernel/rcu/gp_seq.h"

#include <gtest/gtest.h>

#include <vector>

namespace sipi::rcu {
namespace {

// What a counter shows, step by step, beginning at an idle value.
std::vector<uint64_t> History(uint64_t idle, int grace_periods) {
  std::vector<uint64_t> values = {idle};
  for (int i = 0; i < grace_periods; ++i) {
    values.push_back(SeqStarted(values.back()));
    values.push_back(SeqEnded(values.back()));
  }
  return values;
}

// The first step at which a grace period has begun and ended since step `from`.
size_t FullAfter(size_t from) { return (from + 1) / 2 * 2 + 2; }

class AroundTheWrap : public testing::TestWithParam<uint64_t> {};

TEST_P(AroundTheWrap, SnapshotIsDoneAfterOneFullGracePeriod) {
  const auto values = History(GetParam(), 6);
  for (size_t from = 0; from + 4 < values.size(); ++from) {
    const uint64_t snap = SeqSnap(values[from]);
    for (size_t at = from; at < values.size(); ++at) {
      EXPECT_EQ(SeqDone(values[at], snap), at >= FullAfter(from)) << from << " " << at;
      EXPECT_EQ(SeqDoneExact(values[at], snap), at >= FullAfter(from)) << from << " " << at;
      EXPECT_EQ(SeqSnapStarted(values[at], snap), at >= FullAfter(from) - 1) << from << " " << at;
    }
  }
}

TEST_P(AroundTheWrap, StartedAndCompletedSince) {
  const auto values = History(GetParam(), 5);
  for (size_t then = 0; then < values.size(); ++then) {
    for (size_t now = then; now < values.size(); ++now) {
      bool started = false;
      bool completed = false;
      for (size_t i = then + 1; i <= now; ++i)
        (SeqState(values[i]) != 0 ? started : completed) = true;
      EXPECT_EQ(SeqStartedSince(values[now], values[then]), started) << then << " " << now;
      EXPECT_EQ(SeqCompletedSince(values[now], values[then]), completed) << then << " " << now;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, AroundTheWrap,
                         testing::Values(0, 4000, kInitialGpSeq, ~uint64_t{0} - 3, ~uint64_t{0} - 7,
                                         (uint64_t{1} << 63) - 4, uint64_t{1} << 63));

// A counter that has gone so far that the snapshot seems to lie ahead again: only the exact
// question notices.
TEST(GpSeq, OldCookieIsDone) {
  const uint64_t snap = SeqSnap(400);
  const uint64_t far = snap + (uint64_t{1} << 63) + 400;
  EXPECT_FALSE(SeqDone(far, snap));
  EXPECT_TRUE(SeqDoneExact(far, snap));
}

TEST(GpSeq, MachinesBeginShortlyBeforeTheWrap) {
  uint64_t seq = kInitialGpSeq;
  EXPECT_EQ(SeqState(seq), 0u);
  for (int i = 0; i < 300; ++i) seq = SeqEnded(SeqStarted(seq));
  EXPECT_EQ(seq, 0u);
}

}  // namespace
}  // namespace sipi::rcu
