// Sequence numbers of grace periods: the low two bits are a state (0: none runs), what is above
// counts. They wrap; all comparisons are modulo 2^64. Freestanding and free of the platform, so
// that host tests can use it.
#pragma once

#include <cstdint>

namespace sipi::rcu {

inline constexpr uint32_t kSeqShift = 2;
inline constexpr uint64_t kSeqStateMask = (uint64_t{1} << kSeqShift) - 1;

// A machine's counters start this many grace periods before their wrap.
inline constexpr uint64_t kInitialGpSeq = (uint64_t{0} - 300) << kSeqShift;
inline constexpr uint64_t kInitialExpSeq = (uint64_t{0} - 200) << kSeqShift;
inline constexpr uint64_t kInitialBarrierSeq = (uint64_t{0} - 100) << kSeqShift;

// A cookie that needs no grace period (RCU_GET_STATE_COMPLETED): no idle counter shows it.
inline constexpr uint64_t kCompletedCookie = 1;

// a >= b, a < b in the order of a counter that wraps.
constexpr bool SeqGe(uint64_t a, uint64_t b) { return ~uint64_t{0} / 2 >= a - b; }
constexpr bool SeqLt(uint64_t a, uint64_t b) { return ~uint64_t{0} / 2 < a - b; }

constexpr uint64_t SeqCounter(uint64_t seq) { return seq >> kSeqShift; }
constexpr uint32_t SeqState(uint64_t seq) { return static_cast<uint32_t>(seq & kSeqStateMask); }

// The value while the grace period runs that starts at idle value `seq`; the idle value after it.
constexpr uint64_t SeqStarted(uint64_t seq) { return seq + 1; }
constexpr uint64_t SeqEnded(uint64_t seq) { return (seq | kSeqStateMask) + 1; }

// The value that the counter has reached when a full grace period has passed since it showed `seq`:
// one that runs already does not count.
constexpr uint64_t SeqSnap(uint64_t seq) { return (seq + 2 * kSeqStateMask + 1) & ~kSeqStateMask; }
// Has it? `seq` is the counter now.
constexpr bool SeqDone(uint64_t seq, uint64_t snap) { return SeqGe(seq, snap); }
// Likewise, for cookies that may be so old that the counter has wrapped since: a counter that is
// well behind `snap` has.
constexpr bool SeqDoneExact(uint64_t seq, uint64_t snap) {
  constexpr uint64_t kGuard = 3 * kSeqStateMask + 1;  // a fresh snapshot is at most 7 ahead
  return SeqGe(seq, snap) || SeqLt(seq, snap - kGuard);
}
// Has the grace period begun whose end is the snapshot `snap`?
constexpr bool SeqSnapStarted(uint64_t seq, uint64_t snap) {
  return SeqLt((snap - 1) & ~kSeqStateMask, seq);
}
// Has a grace period started since the counter was `seq_then`, or ended?
constexpr bool SeqStartedSince(uint64_t now, uint64_t then) {
  return SeqLt((then + kSeqStateMask) & ~kSeqStateMask, now);
}
constexpr bool SeqCompletedSince(uint64_t now, uint64_t then) {
  return SeqLt(then, now & ~kSeqStateMask);
}

}  // namespace sipi::rcu
