// Contexts: stacks that a host thread switches between, told to the sanitizers.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "guest/platform/threads/cpu.h"

extern "C" {
// guest/platform/sim/fiber_switch.S
void sipi_sim_switch(void** leave, void* enter);
void sipi_sim_fiber_start();

// The sanitizers' interfaces, null in a build without them (sanitizer/common_interface_defs.h,
// tsan_interface.h).
[[gnu::weak]] void __sanitizer_start_switch_fiber(void** fake_stack_save, const void* bottom,
                                                  size_t size);
[[gnu::weak]] void __sanitizer_finish_switch_fiber(void* fake_stack_save, const void** bottom_old,
                                                   size_t* size_old);
[[gnu::weak]] void __asan_unpoison_memory_region(const volatile void* address, size_t size);
[[gnu::weak]] void* __tsan_get_current_fiber();
[[gnu::weak]] void* __tsan_create_fiber(unsigned flags);
[[gnu::weak]] void __tsan_destroy_fiber(void* fiber);
[[gnu::weak]] void __tsan_switch_to_fiber(void* fiber, unsigned flags);

thread_local constinit sipi::threads::Running sipi_threads_running;
}

namespace sipi::threads {

void DropContext(platform::Context& context) {
  if (__tsan_destroy_fiber != nullptr && context.fiber != nullptr) {
    __tsan_destroy_fiber(context.fiber);
  }
  context = platform::Context();
}

void LeaveContextForGood(platform::Context& to) {
  if (__tsan_switch_to_fiber != nullptr) __tsan_switch_to_fiber(to.fiber, 0);
  if (__sanitizer_start_switch_fiber != nullptr) {
    // Null: AddressSanitizer gives back what it keeps for the frames that are left.
    __sanitizer_start_switch_fiber(nullptr, to.stack, to.stack_bytes);
  }
  void* nowhere = nullptr;
  sipi_sim_switch(&nowhere, to.stack_pointer);
  __builtin_unreachable();
}

void ForgetFrames(const void* stack) {
  if (__asan_unpoison_memory_region != nullptr) __asan_unpoison_memory_region(stack, kStackBytes);
}

}  // namespace sipi::threads

namespace sipi::platform {
namespace {

// First thing on a new stack.
void Begin(void* argument) {
  const auto& context = *static_cast<const Context*>(argument);
  if (__sanitizer_finish_switch_fiber != nullptr) {
    __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
  }
  context.entry(context.argument);
}

}  // namespace

void SetCurrentThread(Thread* thread) {
  ThisCpu().current = thread;
  asm volatile("movq %0, %%fs:sipi_threads_running@tpoff+8" ::"r"(thread) : "memory");
}

void* AllocateStack(Kernel&) {
  std::byte* const stack = threads::Here().machine->NewStack();
  if (stack == nullptr) SIPI_PANIC("no memory for a thread's stack");
  return stack;
}

void InitContext(Context& context, void* stack, void (*entry)(void*), void* argument) {
  context = Context();
  context.entry = entry;
  context.argument = argument;
  context.stack = stack;
  context.stack_bytes = threads::kStackBytes;
  threads::ForgetFrames(stack);
  if (__tsan_create_fiber != nullptr) context.fiber = __tsan_create_fiber(0);
  // The frame that sipi_sim_switch takes down: R15 to RBX, RBP, the return address; above it a word
  // that aligns the stack for the call (psABI, 3.2.2).
  auto* top = reinterpret_cast<uint64_t*>(static_cast<std::byte*>(stack) + threads::kStackBytes);
  *--top = 0;
  *--top = 0;
  *--top = reinterpret_cast<uint64_t>(&sipi_sim_fiber_start);
  *--top = 0;                                     // RBP
  *--top = 0;                                     // RBX
  *--top = reinterpret_cast<uint64_t>(&Begin);    // R12
  *--top = reinterpret_cast<uint64_t>(&context);  // R13
  *--top = 0;                                     // R14
  *--top = 0;                                     // R15
  context.stack_pointer = top;
}

void SwitchContext(Context& from, Context& to) {
  if (from.stack == nullptr) {
    // What a CPU booted on has become a thread, which has not been away from here yet.
    from.stack = threads::Here().boot_stack;
    from.stack_bytes = threads::kStackBytes;
  }
  if (__tsan_switch_to_fiber != nullptr) {
    if (from.fiber == nullptr) from.fiber = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(to.fiber, 0);
  }
  if (__sanitizer_start_switch_fiber != nullptr) {
    __sanitizer_start_switch_fiber(&from.fake_stack, to.stack, to.stack_bytes);
  }
  sipi_sim_switch(&from.stack_pointer, to.stack_pointer);
  if (__sanitizer_finish_switch_fiber != nullptr) {
    __sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr);
  }
}

}  // namespace sipi::platform
