// From power-on to KernelMain, and what the interrupt stubs do: start.cc and entry.S of the x86
// platform.
#include "guest/platform/sim/kernel_program.h"

#include <new>

#include "guest/kernel/apic.h"
#include "guest/kernel/boot_params.h"

namespace sipi::sim {
namespace {

void Boot(Cpu& cpu) {
  const uint64_t boot_entry = cpu.machine.CpuTicks(cpu);
  KernelMain(MakeKernel(cpu), boot_entry);
}

void StartAp(Cpu& cpu, Vector startup) { cpu.machine.trampoline().Run(cpu, startup); }

void Interrupt(Cpu& cpu, Vector vector) {
  if (vector.value == abi::kSpuriousVector) return;               // no EOI (SDM vol 3A, 11.9)
  if (vector.value == abi::kWakeVector) return EndOfInterrupt();  // the way back is all its work
  HandleInterrupt(*cpu.self, vector);
}

}  // namespace

Kernel& MakeKernel(Cpu& cpu) {
  Machine& machine = cpu.machine;
  std::byte* const base = machine.memory().base();
  static_assert(sizeof(Kernel) < abi::kParamsGpa - abi::kImageGpa);
  Kernel& kernel = *new (base + abi::kImageGpa) Kernel;
  auto& params = *reinterpret_cast<abi::BootParams*>(base + abi::kParamsGpa);
  TakeBootParams(kernel, params);
  kernel.result->trampoline_holder = abi::kNoCpu;
  cpu.self = &kernel.percpu(kBootCpu);
  return kernel;
}

const Program kKernelProgram = {Boot, StartAp, Interrupt, PreemptAfterInterrupt};

}  // namespace sipi::sim
