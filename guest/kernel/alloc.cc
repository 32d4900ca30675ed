#include "guest/kernel/alloc.h"

namespace sipi {

void* Allocate(Kernel& kernel, uint64_t bytes) {
  constexpr uint64_t kLineBytes = 64;
  const uint64_t rounded = (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
  const uint64_t at = kernel.heap_used.FetchAdd(rounded, std::memory_order_relaxed);
  if (at + rounded > kernel.params->heap_bytes) {
    SIPI_PANIC("the kernel's heap is used up: BootParams::heap_bytes is too small");
  }
  // The heap is zeroed memory of which nothing was used before.
  return reinterpret_cast<void*>(kernel.params->heap_gpa + at);
}

}  // namespace sipi
