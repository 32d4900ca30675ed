// The kernel's memory: a bump allocator over the heap that the VMM has set aside. Nothing is given
// back; what comes and goes (callbacks, torture elements) is kept in pools by its user.
#pragma once

#include <cstdint>
#include <new>

#include "guest/kernel/kernel.h"

namespace sipi {

// Zeroed memory, aligned to a cache line. Any CPU, any context. Panics where the heap is used up,
// naming it.
void* Allocate(Kernel& kernel, uint64_t bytes);

template <class T>
T* AllocateArray(Kernel& kernel, uint64_t count) {
  auto* array = static_cast<T*>(Allocate(kernel, sizeof(T) * count));
  for (uint64_t i = 0; i < count; ++i) new (array + i) T();
  return array;
}

}  // namespace sipi
