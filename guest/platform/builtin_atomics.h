// The seam's atomics where they are the machine's own: GCC's builtins, which fold a constant order
// away. Shared by the platforms that run on real processors (guest/platform/platform.h says what
// each name promises).
#pragma once

#include <atomic>

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

template <class T>
class Atomic {
 public:
  constexpr explicit Atomic(T value) : word_(value) {}
  AtomicRef<T> Ref() { return AtomicRef<T>(word_); }
  T Load(std::memory_order order) { return Ref().Load(order); }
  void Store(T value, std::memory_order order) { Ref().Store(value, order); }
  T Exchange(T value, std::memory_order order) { return Ref().Exchange(value, order); }
  T FetchAdd(T value, std::memory_order order) { return Ref().FetchAdd(value, order); }

 private:
  T word_;
};

}  // namespace sipi::platform
