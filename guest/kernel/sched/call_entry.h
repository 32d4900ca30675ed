// A function call on its way to another CPU (sched/smp_call.h).
#pragma once

#include <cstdint>

#include "guest/platform/platform.h"

namespace sipi {

// Must lie in the machine's memory.
struct CallEntry {
  void (*function)(void*) = nullptr;
  void* argument = nullptr;
  uint64_t next = 0;                     // the entry that was queued before this one
  platform::Atomic<uint32_t> queued{0};  // 1: until the function has returned
};

}  // namespace sipi
