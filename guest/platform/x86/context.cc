// Threads on metal: the first frame of a stack (switch.S has the switch itself).
#include "guest/kernel/alloc.h"
#include "guest/platform/x86/machine.h"

namespace sipi::platform {

// The address behind the stack's last byte.
void* AllocateStack(Kernel& kernel) {
  return static_cast<std::byte*>(Allocate(kernel, kThreadStackBytes)) + kThreadStackBytes;
}

void InitContext(Context& context, void* stack, void (*entry)(void*), void* argument) {
  // What sipi_switch_context takes down: R15 to RBX, RBP, the return address. The word above keeps
  // the stack aligned as a call expects it (psABI, 3.2.2).
  auto* top = static_cast<uint64_t*>(stack);
  *--top = 0;
  *--top = 0;
  *--top = reinterpret_cast<uint64_t>(&sipi_thread_start);
  *--top = 0;                                     // RBP
  *--top = 0;                                     // RBX
  *--top = reinterpret_cast<uint64_t>(entry);     // R12
  *--top = reinterpret_cast<uint64_t>(argument);  // R13
  *--top = 0;                                     // R14
  *--top = 0;                                     // R15
  context.stack_pointer = reinterpret_cast<uint64_t>(top);
}

}  // namespace sipi::platform
