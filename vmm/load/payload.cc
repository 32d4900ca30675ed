#include "vmm/load/payload.h"

#include <elf.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "vmm/base/status_macros.h"
#include "vmm/load/elf_file.h"
#include "vmm/load/image_bytes.h"
#include "vmm/load/loader_area.h"
#include "vmm/load/long_mode.h"
#include "vmm/load/multiboot.h"
#include "vmm/load/pvh.h"

namespace sipi {
namespace {

// What is to be loaded, before anything has been.
struct Plan {
  PayloadKind kind = PayloadKind::kPvh;
  Gpa entry;
  uint64_t entry_offset = 0;  // where the file says so, for errors
  std::vector<ImageSegment> segments;
};

absl::StatusOr<Plan> PlanByAddresses(const ImageBytes& image, const MultibootHeader& header) {
  ASSIGN_OR_RETURN(const ImageSegment segment, SegmentByAddresses(image, header));
  return Plan{.kind = PayloadKind::kMultiboot,
              .entry = Gpa(header.addresses->entry),
              .entry_offset = segment.header_offset + offsetof(MultibootAddresses, entry),
              .segments = {segment}};
}

absl::StatusOr<Plan> MakePlan(const ImageBytes& image) {
  const absl::StatusOr<MultibootHeader> header = FindMultibootHeader(image);
  if (!HasElfMagic(image)) {
    if (absl::IsNotFound(header.status())) {
      return image.Error(0,
                         "neither an ELF file nor an image with a multiboot header; give an "
                         "uncompressed kernel");
    }
    if (!header.ok()) return header.status();
    if (!header->addresses.has_value()) {
      return image.Error(header->offset,
                         "a multiboot header without addresses (flag 16), and the "
                         "file is not ELF: nothing says where to load it");
    }
    return PlanByAddresses(image, *header);
  }
  ASSIGN_OR_RETURN(ElfFile elf, ReadElf(image));
  Plan plan{
      .kind = PayloadKind::kElf64,
      .entry = elf.entry,
      .entry_offset = elf.is_64bit ? offsetof(Elf64_Ehdr, e_entry) : offsetof(Elf32_Ehdr, e_entry),
      .segments = std::move(elf.segments)};
  if (elf.pvh_entry.has_value()) {
    plan.kind = PayloadKind::kPvh;
    plan.entry = *elf.pvh_entry;
  } else if (header.ok()) {
    if (header->addresses.has_value()) return PlanByAddresses(image, *header);
    plan.kind = PayloadKind::kMultiboot;
  } else if (!elf.is_64bit) {
    if (!absl::IsNotFound(header.status())) return header.status();
    return image.Error(0,
                       "a 32-bit ELF file without a multiboot header or a PVH note: nothing "
                       "says how to enter it");
  }
  return plan;
}

std::span<const std::byte> Environment(const PayloadOptions& options) {
  return std::as_bytes(std::span(options.environment.data(), options.environment.size()));
}

absl::StatusOr<Gpa> HandOverMultiboot(const PayloadOptions& options, const GpaRange& image,
                                      const GuestMemory& memory) {
  MultibootInfo info;
  info.command_line =
      options.append.empty() ? options.program : absl::StrCat(options.program, " ", options.append);
  if (!options.environment.empty()) info.modules.push_back({Environment(options), "environment"});
  return WriteMultibootInfo(info, image, memory);
}

// The area: hvm_start_info's page, the environment, and for 64-bit code what it needs (returned in
// `payload`).
absl::Status HandOverStartInfo(const PayloadOptions& options, const GuestMemory& memory,
                               LoadedPayload& payload) {
  const std::span<const std::byte> environment = Environment(options);
  const uint64_t environment_bytes = RoundUpToPage(environment.size());
  const uint64_t long_mode_bytes =
      payload.kind == PayloadKind::kElf64 ? LongModeAreaBytes(memory) : 0;
  ASSIGN_OR_RETURN(const Gpa area,
                   FindLoaderArea(kLoaderPageBytes + environment_bytes + long_mode_bytes,
                                  payload.image, memory));
  const Gpa environment_at = area + kLoaderPageBytes;
  PvhInfo info{.command_line = options.append, .modules = {}, .rsdp = options.rsdp};
  if (!environment.empty()) {
    RETURN_IF_ERROR(memory.Write(environment_at, environment));
    info.modules.push_back({environment_at, environment.size()});
  }
  ASSIGN_OR_RETURN(payload.info, WritePvhInfo(info, area, memory));
  if (payload.kind != PayloadKind::kElf64) return absl::OkStatus();
  payload.long_mode_area = environment_at + environment_bytes;
  return WriteLongModeArea(payload.long_mode_area, memory);
}

}  // namespace

absl::string_view PayloadKindName(PayloadKind kind) {
  switch (kind) {
    case PayloadKind::kPvh:
      return "PVH";
    case PayloadKind::kMultiboot:
      return "multiboot";
    case PayloadKind::kElf64:
      return "64-bit ELF";
  }
  return "";
}

absl::StatusOr<LoadedPayload> LoadPayload(std::span<const std::byte> file, absl::string_view origin,
                                          const PayloadOptions& options,
                                          const GuestMemory& memory) {
  const ImageBytes image(file, origin);
  ASSIGN_OR_RETURN(const Plan plan, MakePlan(image));
  LoadedPayload payload{
      .kind = plan.kind, .image = {}, .entry = plan.entry, .info = {}, .long_mode_area = {}};
  ASSIGN_OR_RETURN(payload.image, LoadSegments(image, plan.segments, memory));
  if (!payload.image.Contains(plan.entry)) {
    return image.Error(
        plan.entry_offset,
        absl::StrCat("the ", PayloadKindName(plan.kind), " entry 0x", absl::Hex(plan.entry.value),
                     " is outside the image, 0x", absl::Hex(payload.image.begin.value), " to 0x",
                     absl::Hex(payload.image.end.value)));
  }
  if (plan.kind != PayloadKind::kElf64 && plan.entry.value > UINT32_MAX) {
    return image.Error(plan.entry_offset,
                       absl::StrCat("the ", PayloadKindName(plan.kind), " entry 0x",
                                    absl::Hex(plan.entry.value), " is above 4 GiB"));
  }
  if (plan.kind == PayloadKind::kMultiboot) {
    ASSIGN_OR_RETURN(payload.info, HandOverMultiboot(options, payload.image, memory));
  } else {
    RETURN_IF_ERROR(HandOverStartInfo(options, memory, payload));
  }
  return payload;
}

void SetPayloadEntryState(const LoadedPayload& payload, const GuestMemory& memory, kvm_regs& regs,
                          kvm_sregs& sregs) {
  switch (payload.kind) {
    case PayloadKind::kPvh:
      SetPvhEntryState(payload.entry, payload.info, regs, sregs);
      return;
    case PayloadKind::kMultiboot:
      SetMultibootEntryState(payload.entry, payload.info, regs, sregs);
      return;
    case PayloadKind::kElf64:
      SetLongModeEntryState(payload.entry, payload.info, payload.long_mode_area, memory, regs,
                            sregs);
      return;
  }
}

}  // namespace sipi
