// `sipi params`: the boot parameters as a file, so that another VMM can boot guest.elf with its
// -initrd.
#include <cstddef>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "vmm/base/exit_codes.h"
#include "vmm/base/status_macros.h"
#include "vmm/cli/commands.h"
#include "vmm/cli/kvm_access.h"
#include "vmm/cli/messages.h"
#include "vmm/cli/outputs.h"
#include "vmm/kvm/kvm.h"
#include "vmm/kvm/vm.h"
#include "vmm/load/params.h"
#include "vmm/report/file_writer.h"

namespace sipi {
namespace {

// What every guest of this host sees as its TSC's frequency, if nobody scales it.
absl::StatusOr<uint32_t> HostTscKhz(const std::string& kvm_device) {
  KvmOptions options;
  options.path = kvm_device;
  ASSIGN_OR_RETURN(const Kvm kvm, Kvm::Open(options));
  ASSIGN_OR_RETURN(Vm vm, Vm::Create(kvm));
  ASSIGN_OR_RETURN(const Vcpu vcpu, vm.CreateVcpu(0));
  return vcpu.TscKhz();
}

absl::Status WriteParams(const CommandLine& line, uint64_t* ram_bytes) {
  RETURN_IF_ERROR(CheckFilesApart({{"--out", line.params_file}}, InputsOf(line.flags)));
  RunConfig config = line.checked.config;
  // No other VMM has the devices that these need.
  if (config.driver == abi::Driver::kHost) {
    return absl::InvalidArgumentError("--driver: host needs sipi itself; use --driver=guest");
  }
  config.clock_known = true;
  ASSIGN_OR_RETURN(const uint32_t tsc_khz, HostTscKhz(config.kvm_device));
  const ArenaLayout arena = PlanArena(NeedsOf(config));
  const std::vector<std::byte> blob = BuildBootParams(config, arena, tsc_khz);
  *ram_bytes = arena.ram_bytes;
  const std::string_view content(reinterpret_cast<const char*>(blob.data()), blob.size());
  return WriteResultFile(line.params_file, content, "--out");
}

}  // namespace

int ParamsCommand(const CommandLine& line) {
  uint64_t ram_bytes = 0;
  const absl::Status written = WriteParams(line, &ram_bytes);
  if (!written.ok()) {
    Say(written);
    return static_cast<int>(ExitCodeOf(written));
  }
  if (line.flags.quiet || line.params_file == "-") return 0;
  constexpr uint64_t kMiB = 1024 * 1024;
  const bool printed =
      Print(absl::StrCat("The guest needs ", ram_bytes / kMiB, " MiB of memory and ",
                         line.checked.config.cpus, " CPUs.\n"));
  return printed ? 0 : static_cast<int>(ExitCode::kError);
}

}  // namespace sipi
