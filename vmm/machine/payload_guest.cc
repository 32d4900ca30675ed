#include "vmm/machine/payload_guest.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "vmm/base/status_macros.h"
#include "vmm/load/mapped_file.h"

namespace sipi {
namespace {

// The file stays mapped for as long as the machine may load it again.
struct Payload {
  MappedFile file;
  std::string origin;
  PayloadOptions options;

  absl::StatusOr<LoadedPayload> LoadInto(const GuestMemory& memory) const {
    return LoadPayload(file.bytes(), origin, options, memory);
  }
};

PayloadOptions OptionsOf(const PayloadConfig& config) {
  PayloadOptions options;
  options.program = config.path;
  options.append = config.append;
  for (const std::string& line : config.environment) {
    absl::StrAppend(&options.environment, line, "\n");
  }
  return options;
}

absl::Status Named(const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("--payload: ", status.message()));
}

}  // namespace

absl::StatusOr<uint64_t> PayloadRamBytes(const RunConfig& config) {
  if (config.memory_bytes == 0) return kPayloadRamBytes;
  if (config.memory_bytes < kLeastPayloadRamBytes) {
    return absl::InvalidArgumentError(absl::StrCat("--memory: ", config.memory_bytes,
                                                   " bytes are too few for a payload; give at "
                                                   "least 1M"));
  }
  return config.memory_bytes;
}

absl::StatusOr<PayloadKind> LoadPayloadGuest(const RunConfig& config, Machine& machine) {
  absl::StatusOr<MappedFile> file = MappedFile::Open(config.payload->path);
  if (!file.ok()) return Named(file.status());
  const auto payload = std::make_shared<const Payload>(
      Payload{std::move(*file), config.payload->path, OptionsOf(*config.payload)});
  ASSIGN_OR_RETURN(const uint64_t ram_bytes, PayloadRamBytes(config));
  ASSIGN_OR_RETURN(GuestMemory memory, GuestMemory::Create(ram_bytes));
  absl::StatusOr<LoadedPayload> loaded = payload->LoadInto(memory);
  if (!loaded.ok()) return Named(loaded.status());
  RETURN_IF_ERROR(machine.SetMemory(std::move(memory)));
  const auto load = [payload](const GuestMemory& ram,
                              const VcpuEvents::EnterState& enter) -> absl::Status {
    ASSIGN_OR_RETURN(const LoadedPayload again, payload->LoadInto(ram));
    return enter(
        [&](kvm_regs& regs, kvm_sregs& sregs) { SetPayloadEntryState(again, ram, regs, sregs); });
  };
  RETURN_IF_ERROR(machine.SetFirmware(load));
  RETURN_IF_ERROR(machine.SetBootState([&](kvm_regs& regs, kvm_sregs& sregs) {
    SetPayloadEntryState(*loaded, machine.memory(), regs, sregs);
  }));
  machine.log().Emit(abi::TraceEvent::kGuestLoaded);
  return loaded->kind;
}

}  // namespace sipi
