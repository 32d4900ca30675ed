#include "vmm/machine/payload_guest.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "vmm/base/status_macros.h"
#include "vmm/load/image_file.h"

namespace sipi {
namespace {

PayloadOptions OptionsOf(const PayloadConfig& config) {
  PayloadOptions options;
  options.program = config.path;
  options.append = config.append;
  for (const std::string& line : config.environment) {
    absl::StrAppend(&options.environment, line, "\n");
  }
  return options;
}

// Whatever is wrong with the file, it is the flag that is to be changed.
absl::Status Named(const absl::Status& status) {
  return absl::InvalidArgumentError(absl::StrCat("--payload: ", status.message()));
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

absl::StatusOr<PreparedPayload> PreparePayload(const RunConfig& config) {
  absl::StatusOr<ImageFile> opened = ImageFile::Read(config.payload->path);
  if (!opened.ok()) return Named(opened.status());
  ASSIGN_OR_RETURN(const uint64_t ram_bytes, PayloadRamBytes(config));
  ASSIGN_OR_RETURN(GuestMemory memory, GuestMemory::Create(ram_bytes));
  // The bytes stay for as long as the machine may load them again.
  const auto load = [file = std::make_shared<const ImageFile>(std::move(*opened)),
                     origin = config.payload->path,
                     options = OptionsOf(*config.payload)](const GuestMemory& ram) {
    return LoadPayload(file->bytes(), origin, options, ram);
  };
  absl::StatusOr<LoadedPayload> loaded = load(memory);
  if (!loaded.ok()) return Named(loaded.status());
  return PreparedPayload{std::move(memory), *std::move(loaded), load};
}

absl::Status InstallPayload(PreparedPayload payload, Machine& machine) {
  RETURN_IF_ERROR(machine.SetMemory(std::move(payload.memory)));
  const auto load = [load_again = std::move(payload.load_again)](
                        const GuestMemory& ram,
                        const VcpuEvents::EnterState& enter) -> absl::Status {
    ASSIGN_OR_RETURN(const LoadedPayload again, load_again(ram));
    return enter(
        [&](kvm_regs& regs, kvm_sregs& sregs) { SetPayloadEntryState(again, ram, regs, sregs); });
  };
  RETURN_IF_ERROR(machine.SetFirmware(load));
  RETURN_IF_ERROR(machine.SetBootState([&](kvm_regs& regs, kvm_sregs& sregs) {
    SetPayloadEntryState(payload.loaded, machine.memory(), regs, sregs);
  }));
  machine.log().Emit(abi::TraceEvent::kGuestLoaded);
  return absl::OkStatus();
}

}  // namespace sipi
