// The compare-exchange loops around init_sipi.h's pure functions, which hold the rules (SDM vol 3A,
// 9.4.4, 11.6.1).
#include "apic/model/init_sipi.h"

namespace sipi::apic {
namespace {

// Replaces the word by change(word) and returns the old one.
template <class Change>
StartupWord Apply(std::atomic<uint64_t>& word, Change change) {
  uint64_t old = word.load(std::memory_order_acquire);
  while (true) {
    const StartupWord next = change(StartupWord{old});
    if (next.bits == old) return {old};
    if (word.compare_exchange_weak(old, next.bits, std::memory_order_acq_rel,
                                   std::memory_order_acquire)) {
      return {old};
    }
  }
}

}  // namespace

bool StartupMailbox::PostInit() {
  const StartupWord old = Apply(word_, [](StartupWord w) { return apic::PostInit(w); });
  return apic::PostInit(old) != old;
}

bool StartupMailbox::PostSipi(Vector vector) {
  const StartupWord old =
      Apply(word_, [vector](StartupWord w) { return apic::PostSipi(w, vector); });
  return apic::PostSipi(old, vector) != old;
}

StartupAction StartupMailbox::Take() {
  return Consume(Apply(word_, [](StartupWord w) { return Consume(w).next; })).action;
}

void StartupMailbox::SetBsp(bool bsp) {
  Apply(word_, [bsp](StartupWord w) {
    return StartupWord{bsp ? w.bits | StartupWord::kBsp : w.bits & ~StartupWord::kBsp};
  });
}

}  // namespace sipi::apic
