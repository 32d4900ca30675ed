// A shared word that is an object of its own: the platform's AtomicRef over a word of this one's.
// Included by each platform behind its AtomicRef (guest/platform/platform.h says what each name
// promises).
#pragma once

#include <atomic>

namespace sipi::platform {

template <class T>
class AtomicRef;

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
