// A timer: a function that a CPU calls in interrupt context at a time. sched/time.h has the calls.
#pragma once

#include <cstdint>

#include "guest/platform/platform.h"

namespace sipi {

// Must lie in the machine's memory. Called on the CPU that started it, or, where that went offline,
// on the one that took its timers over.
struct Timer {
  void (*function)(void*) = nullptr;
  void* argument = nullptr;
  // Guarded by the timer lock of `cpu`'s run queue.
  uint64_t deadline_ticks = 0;
  Timer* next = nullptr;
  platform::Atomic<uint32_t> cpu{0};
  platform::Atomic<uint32_t> armed{0};
};

}  // namespace sipi
