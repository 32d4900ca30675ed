#include "vmm/machine/config_check.h"

#include "absl/strings/str_cat.h"
#include "guest/abi/step_failure.h"
#include "vmm/base/status_macros.h"

namespace sipi {
namespace {

// What happens to an INIT or SIPI between sender and target. In KVM's irqchips nobody sees it.
bool NeedsUserApic(abi::Fault fault) {
  switch (fault) {
    case abi::Fault::kLostInit:
    case abi::Fault::kLostSipi1:
    case abi::Fault::kLostSipi2:
    case abi::Fault::kLostSipis:
      return true;
    default:
      return false;
  }
}

absl::Status CheckKvmIrqchip(const RunConfig& config) {
  const Profile& profile = config.profile;
  const char* chip = Name(config.irqchip);
  if ((profile.init.ns | profile.startup.ns | profile.ipi.ns) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--irqchip=", chip, ": profile ", profile.name,
        " imposes latencies on INIT, SIPI or IPIs, which only sipi's own APIC can do; use "
        "--irqchip=user or --profile=native"));
  }
  if (NeedsUserApic(config.fault.kind)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--fault: KVM's ", chip,
                     " irqchip delivers INIT and SIPI itself, so none can be lost on purpose; use "
                     "--irqchip=user, or the fault no-start"));
  }
  return absl::OkStatus();
}

}  // namespace

const char* Name(IrqchipKind kind) {
  switch (kind) {
    case IrqchipKind::kUser:
      return "user";
    case IrqchipKind::kSplit:
      return "split";
    case IrqchipKind::kKernel:
      return "kernel";
  }
  return "?";
}

absl::Status CheckConfig(const RunConfig& config) {
  const uint32_t cpus = config.topology.cpu_count();
  if (cpus == 0) return absl::InvalidArgumentError("--topology: it has no CPU; use --cpus=N");
  for (const uint32_t cpu : config.order) {
    if (cpu != 0 && cpu < cpus) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--order: CPU ", cpu,
                     cpu == 0 ? " is the boot CPU, which is up already" : " does not exist",
                     "; name CPUs from 1 to ", cpus - 1));
  }
  if (config.fault.kind != abi::Fault::kNone && config.fault.cpu >= cpus) {
    return absl::InvalidArgumentError(absl::StrCat("--fault: CPU ", config.fault.cpu,
                                                   " does not exist; the last one is ", cpus - 1));
  }
  if (config.fault.kind == abi::Fault::kFailStep) {
    const auto state = static_cast<abi::CpuhpState>(config.fault.value);
    const bool services = config.kernel.services != 0;
    if (!abi::HasStep(state, services, config.kernel.hotplug_steps)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--fault: the guest's kernel, as this command and its flags have it, has no step ",
          abi::Name(state), " (", config.fault.value, "); ",
          services ? "give --hotplug-steps=pseries, or name another one"
                   : "give --scenario=hotplug or another command with CPU hotplug, or name another "
                     "one"));
    }
  }
  return config.irqchip == IrqchipKind::kUser ? absl::OkStatus() : CheckKvmIrqchip(config);
}

}  // namespace sipi
