#include "vmm/machine/guest_image.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "guest/abi/layout.h"
#include "vmm/base/status_macros.h"
#include "vmm/load/elf.h"
#include "vmm/load/pvh.h"

// guest.elf, linked into the program (guest/image.S).
extern "C" const unsigned char sipi_guest_elf[];
extern "C" const unsigned char sipi_guest_elf_end[];

namespace sipi {
namespace {

std::span<const std::byte> GuestElf() {
  return std::as_bytes(std::span(sipi_guest_elf, sipi_guest_elf_end));
}

absl::StatusOr<GuestMemory> MemoryFor(const RunConfig& config, const ArenaLayout& arena) {
  if (config.memory_bytes != 0 && config.memory_bytes < arena.ram_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--memory: ", config.memory_bytes, " bytes are too few for ", config.topology.cpu_count(),
        " CPUs, which need ", arena.ram_bytes, "; leave the flag out"));
  }
  return GuestMemory::Create(std::max(config.memory_bytes, arena.ram_bytes));
}

}  // namespace

absl::StatusOr<ArenaLayout> LoadGuest(const RunConfig& config, Machine& machine) {
  const ArenaLayout arena = PlanArena(NeedsOf(config));
  ASSIGN_OR_RETURN(GuestMemory memory, MemoryFor(config, arena));
  ASSIGN_OR_RETURN(const LoadedImage image, LoadElf(GuestElf(), memory, "guest.elf"));
  if (!image.pvh_entry) return absl::InternalError("guest.elf: no PVH entry note");
  const std::vector<std::byte> params = BuildBootParams(config, arena, machine.tsc_khz());
  const Gpa params_at(abi::kParamsGpa);
  if (params_at.value + params.size() > abi::kArenaGpa) {
    return absl::InternalError(absl::StrCat("boot parameters: ", params.size(),
                                            " bytes reach into the arena at ", abi::kArenaGpa));
  }
  RETURN_IF_ERROR(memory.Write(params_at, params));
  PvhInfo info;
  info.modules.push_back({params_at, params.size()});
  ASSIGN_OR_RETURN(const Gpa start_info, WritePvhInfo(info, Gpa(abi::kPvhInfoGpa), memory));
  RETURN_IF_ERROR(machine.SetMemory(std::move(memory)));
  RETURN_IF_ERROR(machine.SetBootState([&](kvm_regs& regs, kvm_sregs& sregs) {
    SetPvhEntryState(*image.pvh_entry, start_info, regs, sregs);
  }));
  machine.log().Emit(abi::TraceEvent::kGuestLoaded);
  return arena;
}

absl::StatusOr<HostSequence> SequenceFor(const RunConfig& config, const ArenaLayout& arena,
                                         const GuestMemory& memory) {
  HostSequence sequence;
  sequence.strategy = config.strategy;
  sequence.knobs = config.knobs;
  sequence.order = config.order;
  for (const CpuPlace& place : config.topology.places) {
    sequence.is_primary.push_back(place.thread == 0);
  }
  ASSIGN_OR_RETURN(sequence.slots,
                   memory.ArrayAt<abi::CpuSlot>(arena.slots, config.topology.cpu_count()));
  ASSIGN_OR_RETURN(sequence.result, memory.At<abi::ResultPage>(arena.result));
  return sequence;
}

}  // namespace sipi
