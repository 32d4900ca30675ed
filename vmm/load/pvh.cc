#include "vmm/load/pvh.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "absl/strings/str_cat.h"
#include "vmm/base/status_macros.h"

namespace sipi {
namespace {

constexpr uint32_t kStartMagic = 0x336ec578;  // "xEn3" with bit 7 of the E set
constexpr uint64_t kPageBytes = 4096;

// start_info.h, version 1.
struct HvmStartInfo {
  uint32_t magic;
  uint32_t version;
  uint32_t flags;
  uint32_t module_count;
  uint64_t modules_gpa;
  uint64_t command_line_gpa;
  uint64_t rsdp_gpa;
  uint64_t memory_map_gpa;
  uint32_t memory_map_count;
  uint32_t reserved;
};
static_assert(sizeof(HvmStartInfo) == 56);

struct HvmModule {
  uint64_t gpa;
  uint64_t bytes;
  uint64_t command_line_gpa;
  uint64_t reserved;
};
static_assert(sizeof(HvmModule) == 32);

struct HvmMemoryMapEntry {
  uint64_t gpa;
  uint64_t bytes;
  uint32_t type;
  uint32_t reserved;
};
static_assert(sizeof(HvmMemoryMapEntry) == 24);

kvm_segment FlatSegment(uint16_t selector, uint8_t type) {
  kvm_segment segment = {};
  segment.limit = 0xffffffff;
  segment.selector = selector;
  segment.type = type;
  segment.present = 1;
  segment.s = 1;   // code or data
  segment.db = 1;  // 32 bits
  segment.g = 1;   // limit in pages
  return segment;
}

}  // namespace

std::vector<MemoryMapEntry> BuildMemoryMap(const GuestMemory& memory) {
  constexpr uint64_t kLowEnd = 0x9fc00;    // the EBDA's usual place
  constexpr uint64_t kHighEnd = 0x100000;  // video memory and ROMs end here
  const std::vector<RamRange> ranges = memory.Ranges();
  const uint64_t low = ranges[0].bytes;
  std::vector<MemoryMapEntry> map;
  map.push_back({Gpa(0), std::min(low, kLowEnd), MemoryMapType::kRam});
  map.push_back({Gpa(kLowEnd), kHighEnd - kLowEnd, MemoryMapType::kReserved});
  if (low > kHighEnd) map.push_back({Gpa(kHighEnd), low - kHighEnd, MemoryMapType::kRam});
  map.push_back({Gpa(kLowRamLimit), kHighRamGpa - kLowRamLimit, MemoryMapType::kReserved});
  if (ranges.size() > 1) map.push_back({ranges[1].gpa, ranges[1].bytes, MemoryMapType::kRam});
  return map;
}

absl::StatusOr<Gpa> WritePvhInfo(const PvhInfo& info, Gpa at, const GuestMemory& memory) {
  const std::vector<MemoryMapEntry> map = BuildMemoryMap(memory);
  const Gpa map_at = at + sizeof(HvmStartInfo);
  const Gpa modules_at = map_at + map.size() * sizeof(HvmMemoryMapEntry);
  const Gpa command_line_at = modules_at + info.modules.size() * sizeof(HvmModule);
  const uint64_t bytes = command_line_at.value - at.value + info.command_line.size() + 1;
  if (bytes > kPageBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "PVH start info with a command line of ", info.command_line.size(), " characters takes ",
        bytes, " bytes, but ", kPageBytes, " are set aside; shorten --append"));
  }
  ASSIGN_OR_RETURN(HvmStartInfo* const start, memory.At<HvmStartInfo>(at));
  *start = {.magic = kStartMagic,
            .version = 1,
            .flags = 0,
            .module_count = static_cast<uint32_t>(info.modules.size()),
            .modules_gpa = info.modules.empty() ? 0 : modules_at.value,
            .command_line_gpa = command_line_at.value,
            .rsdp_gpa = info.rsdp.value,
            .memory_map_gpa = map_at.value,
            .memory_map_count = static_cast<uint32_t>(map.size()),
            .reserved = 0};
  ASSIGN_OR_RETURN(const auto map_to, memory.ArrayAt<HvmMemoryMapEntry>(map_at, map.size()));
  for (size_t i = 0; i < map.size(); ++i) {
    map_to[i] = {map[i].at.value, map[i].bytes, static_cast<uint32_t>(map[i].type), 0};
  }
  ASSIGN_OR_RETURN(const auto modules_to,
                   memory.ArrayAt<HvmModule>(modules_at, info.modules.size()));
  for (size_t i = 0; i < info.modules.size(); ++i) {
    modules_to[i] = {info.modules[i].at.value, info.modules[i].bytes, 0, 0};
  }
  const std::span text(info.command_line.c_str(), info.command_line.size() + 1);
  RETURN_IF_ERROR(memory.Write(command_line_at, std::as_bytes(text)));
  return at;
}

void SetPvhEntryState(Gpa entry, Gpa start_info, kvm_regs& regs, kvm_sregs& sregs) {
  constexpr uint16_t kCode = 0x08, kData = 0x10, kTask = 0x18;  // any will do: there is no GDT
  constexpr uint64_t kCr0 = 0x11;                               // PE, and ET, which is always set
  constexpr uint64_t kRflags = 0x2;    // bit 1 is always set; VM, IF, TF clear
  sregs.cs = FlatSegment(kCode, 0xb);  // execute, read, accessed
  sregs.ds = sregs.es = sregs.fs = sregs.gs = sregs.ss = FlatSegment(kData, 0x3);
  sregs.tr = {};
  sregs.tr.limit = 0x67;
  sregs.tr.selector = kTask;
  sregs.tr.type = 0xb;  // 32-bit TSS, busy
  sregs.tr.present = 1;
  sregs.ldt = {};
  sregs.ldt.unusable = 1;
  sregs.cr0 = kCr0;
  sregs.cr3 = 0;
  sregs.cr4 = 0;
  sregs.efer = 0;
  regs.rip = entry.value;
  regs.rbx = start_info.value;
  regs.rflags = kRflags;
}

}  // namespace sipi
