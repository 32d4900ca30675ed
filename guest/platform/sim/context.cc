// Threads in the simulator: SwitchContext and what belongs to it. The pool's stacks behind the
// CPUs' own are the threads'; a thread that never runs has none.
#include <cerrno>
#include <cstring>

#include "guest/platform/sim/machine.h"

namespace sipi::sim {

std::byte* Machine::NewThreadStack(Cpu& cpu) {
  std::byte* const stack = backing_->stacks.Get(size() + thread_stacks_++);
  if (stack != nullptr) return stack;
  Finish(cpu, {.kind = EndKind::kHostError,
               .cpu = CpuNumber(cpu.number),
               .code = 0,
               .text = std::string("no stack for another kernel thread: ") + strerror(errno) +
                       "; raise vm.max_map_count to 20 times the number of CPUs, or use fewer "
                       "--cpus"});
}

}  // namespace sipi::sim

namespace sipi::platform {

using sim::Cpu;
using sim::Current;

namespace {

void ThreadMain(void* context) {
  sim::Fiber::ThreadArrived();
  const auto& own = *static_cast<Context*>(context);
  own.entry(own.argument);
}

}  // namespace

Thread* CurrentThread() {
  const Cpu& cpu = Current();
  return cpu.self == nullptr ? nullptr : cpu.self->current;
}

void SetCurrentThread(Thread* thread) { Current().self->current = thread; }

// Made when it is needed (SwitchContext).
void* AllocateStack(Kernel&) { return nullptr; }

void InitContext(Context& context, void*, void (*entry)(void*), void* argument) {
  context = Context();
  context.entry = entry;
  context.argument = argument;
}

void SwitchContext(Context& from, Context& to) {
  Cpu& cpu = Current();
  if (to.at.stack == nullptr) {
    std::byte* const stack = cpu.machine.NewThreadStack(cpu);
    to.at = sim::Fiber::Prepare(stack, ThreadMain, &to, reinterpret_cast<uintptr_t>(&to) / 64);
  }
  cpu.fiber.SwitchStack(from.at, to.at, &cpu);
}

}  // namespace sipi::platform
