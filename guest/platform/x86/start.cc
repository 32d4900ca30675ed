// From the PVH hand-over to KernelMain, and from the trampoline to ApMain.
#include <cstddef>

#include "guest/kernel/apic.h"
#include "guest/kernel/boot_params.h"
#include "guest/platform/x86/machine.h"
#include "guest/platform/x86/pvh.h"

namespace sipi::platform {

Clock g_clock;
bool g_x2apic;
bool g_charge;
uint16_t g_pm_timer_port;

namespace {

Kernel g_kernel;

// Without boot parameters there is nobody to report to: end with a code that the VMM's table of
// statuses has.
constexpr uint32_t kExitNoParams = 0x70;

const abi::BootParams* FindParams(const HvmStartInfo& info) {
  if (info.magic != kHvmStartMagic || info.nr_modules == 0) return nullptr;
  const auto* modules = reinterpret_cast<const HvmModule*>(info.modlist_paddr);
  const auto* params = reinterpret_cast<const abi::BootParams*>(modules[0].paddr);
  if (params->magic != abi::kBootParamsMagic || params->version != abi::kAbiVersion) return nullptr;
  return params;
}

// The hand-over may be in either mode; the machine's mode is what the parameters say.
void EnterApicMode(const abi::BootParams& params) {
  g_x2apic = static_cast<abi::ApicMode>(params.apic_mode) == abi::ApicMode::kX2Apic;
  const uint64_t base = ReadMsr(apic::kMsrApicBase);
  const uint64_t wanted = base | apic::kApicBaseEnable | (g_x2apic ? apic::kApicBaseX2Apic : 0);
  if (wanted != base) WriteMsr(apic::kMsrApicBase, wanted);
}

void SetGsBase(const PerCpu& self) {
  constexpr uint32_t kMsrGsBase = 0xc0000101;
  WriteMsr(kMsrGsBase, reinterpret_cast<uint64_t>(&self));
}

}  // namespace

}  // namespace sipi::platform

using namespace sipi;            // NOLINT: entry points with C names
using namespace sipi::platform;  // NOLINT

extern "C" void SipiBootMain(uint32_t start_info, uint64_t boot_entry_ticks) {
  const abi::BootParams* params =
      FindParams(*reinterpret_cast<const HvmStartInfo*>(uint64_t{start_info}));
  if (params == nullptr) Exit(kExitNoParams);
  Kernel& kernel = g_kernel;
  TakeBootParams(kernel, *params);
  g_charge = params->charge != 0;
  g_pm_timer_port = params->pm_timer_port;
  EnterApicMode(*params);
  SetGsBase(kernel.percpu(kBootCpu));
  KernelMain(kernel, boot_entry_ticks);
}

extern "C" void SipiApMain(Kernel* kernel, PerCpu* self, uint64_t first_instruction_ticks) {
  ApMain(*kernel, *self, first_instruction_ticks);
}
