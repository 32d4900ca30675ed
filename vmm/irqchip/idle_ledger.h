// Knows when nothing can ever happen again: every participant (each vCPU's thread, and the host's
// sequencer if there is one) is blocked without a deadline, and no mailbox holds work.
//
// The count and the number of wake-ups share one word. A participant leaves before it takes its
// work. So if the word is the same before and after a look at all mailboxes that found no work,
// then nobody was awake in between who could have left any.
#pragma once

#include <atomic>
#include <cstdint>

namespace sipi {

class IdleLedger {
 public:
  explicit IdleLedger(uint32_t participants) : participants_(participants) {}

  // A participant blocks, its sleep announced. True if it was the last: then look with AllIdle.
  bool Enter() {
    const uint64_t before = word_.fetch_add(1, std::memory_order_seq_cst);
    return Blocked(before) + 1 == participants_;
  }

  // A participant is awake again; called before it takes any work.
  void Leave() { word_.fetch_add(kOneWakeUp - 1, std::memory_order_seq_cst); }

  // Exact: true only if nothing can happen any more. `has_work` looks at all mailboxes.
  template <class HasWork>
  bool AllIdle(HasWork&& has_work) const {
    const uint64_t before = word_.load(std::memory_order_seq_cst);
    if (Blocked(before) != participants_) return false;
    if (has_work()) return false;
    return word_.load(std::memory_order_seq_cst) == before;
  }

 private:
  static constexpr uint64_t kOneWakeUp = uint64_t{1} << 32;
  static uint32_t Blocked(uint64_t word) { return static_cast<uint32_t>(word); }

  const uint32_t participants_;
  std::atomic<uint64_t> word_{0};
};

}  // namespace sipi
