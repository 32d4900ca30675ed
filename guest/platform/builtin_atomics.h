// The seam's atomics where they are the machine's own: GCC's builtins, which fold a constant order
// away. Shared by the platforms that run on real processors (guest/platform/platform.h says what
// each name promises).
#pragma once

#include <atomic>

#include "guest/platform/atomic_word.h"

namespace sipi::platform {

template <class T>
class AtomicRef {
 public:
  explicit AtomicRef(T& word) : word_(&word) {}
  T Load(std::memory_order order) const { return __atomic_load_n(word_, static_cast<int>(order)); }
  void Store(T value, std::memory_order order) const {
    __atomic_store_n(word_, value, static_cast<int>(order));
  }
  T Exchange(T value, std::memory_order order) const {
    return __atomic_exchange_n(word_, value, static_cast<int>(order));
  }
  T FetchAdd(T value, std::memory_order order) const {
    return __atomic_fetch_add(word_, value, static_cast<int>(order));
  }
  bool CompareExchange(T& expected, T value, std::memory_order order) const {
    return __atomic_compare_exchange_n(word_, &expected, value, false, static_cast<int>(order),
                                       __ATOMIC_ACQUIRE);
  }

 private:
  T* word_;
};

}  // namespace sipi::platform
