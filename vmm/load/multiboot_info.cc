// The information block of multiboot.h (Multiboot Specification 0.6.96, 3.3).
#include <cstddef>
#include <cstring>

#include "vmm/base/status_macros.h"
#include "vmm/load/loader_area.h"
#include "vmm/load/multiboot.h"
#include "vmm/load/pvh.h"

namespace sipi {
namespace {

constexpr uint32_t kHasMemory = 1u << 0;
constexpr uint32_t kHasCommandLine = 1u << 2;
constexpr uint32_t kHasModules = 1u << 3;
constexpr uint32_t kHasMemoryMap = 1u << 6;
constexpr uint32_t kHasLoaderName = 1u << 9;
constexpr char kLoaderName[] = "sipi";

struct Block {
  uint32_t flags;
  uint32_t lower_kib;  // from 0
  uint32_t upper_kib;  // from 1 MiB to the first hole
  uint32_t boot_device;
  uint32_t command_line;
  uint32_t module_count;
  uint32_t modules;
  uint32_t symbols[4];
  uint32_t map_bytes;
  uint32_t map;
  uint32_t drives_bytes;
  uint32_t drives;
  uint32_t config_table;
  uint32_t loader_name;
  uint32_t apm_table;
  uint32_t vbe[4];
  uint32_t framebuffer[7];
};
static_assert(offsetof(Block, loader_name) == 64 && sizeof(Block) == 116);

struct Module {
  uint32_t begin;
  uint32_t end;  // one past the last byte
  uint32_t command_line;
  uint32_t reserved;
};
static_assert(sizeof(Module) == 16);

struct [[gnu::packed]] MapEntry {
  uint32_t bytes_that_follow;
  uint64_t at;
  uint64_t bytes;
  uint32_t type;
};
static_assert(sizeof(MapEntry) == 24);

// Hands out one piece of the area after another. Called first to measure, from address 0.
class Layout {
 public:
  explicit Layout(Gpa begin) : next_(begin) {}
  Gpa Take(uint64_t bytes, uint64_t align = 8) {
    next_ = Gpa((next_.value + align - 1) / align * align);
    const Gpa at = next_;
    next_ = next_ + bytes;
    return at;
  }
  uint64_t end() const { return next_.value; }

 private:
  Gpa next_;
};

struct Places {
  Gpa block;
  Gpa map;
  Gpa modules;
  Gpa command_line;
  Gpa loader_name;
  std::vector<Gpa> module_command_lines;
  std::vector<Gpa> module_bytes;
  uint64_t end = 0;
};

Places Place(const MultibootInfo& info, size_t map_entries, Gpa begin) {
  Layout layout(begin);
  Places places;
  places.block = layout.Take(sizeof(Block));
  places.map = layout.Take(map_entries * sizeof(MapEntry));
  places.modules = layout.Take(info.modules.size() * sizeof(Module));
  places.command_line = layout.Take(info.command_line.size() + 1);
  places.loader_name = layout.Take(sizeof(kLoaderName));
  for (const MultibootModule& module : info.modules) {
    places.module_command_lines.push_back(layout.Take(module.command_line.size() + 1));
  }
  for (const MultibootModule& module : info.modules) {
    places.module_bytes.push_back(layout.Take(module.bytes.size(), kLoaderPageBytes));
  }
  places.end = layout.end();
  return places;
}

// All places lie below 3 GiB.
uint32_t Low(Gpa gpa) { return static_cast<uint32_t>(gpa.value); }

absl::Status WriteString(Gpa at, const std::string& text, const GuestMemory& memory) {
  return memory.Write(at, std::as_bytes(std::span(text.c_str(), text.size() + 1)));
}

template <class T>
absl::Status WriteValue(Gpa at, const T& value, const GuestMemory& memory) {
  return memory.Write(at, std::as_bytes(std::span(&value, 1)));
}

Block MakeBlock(const MultibootInfo& info, const Places& places, size_t map_entries,
                const GuestMemory& memory) {
  constexpr uint64_t kMib = 1 << 20;
  constexpr uint64_t kLowEnd = 0x9fc00;  // as in the memory map
  const uint64_t low = memory.Ranges()[0].bytes;
  Block block = {};
  block.flags = kHasMemory | kHasCommandLine | kHasMemoryMap | kHasLoaderName |
                (info.modules.empty() ? 0 : kHasModules);
  block.lower_kib = static_cast<uint32_t>(std::min(low, kLowEnd) / 1024);
  block.upper_kib = static_cast<uint32_t>(low > kMib ? (low - kMib) / 1024 : 0);
  block.command_line = Low(places.command_line);
  block.module_count = static_cast<uint32_t>(info.modules.size());
  block.modules = info.modules.empty() ? 0 : Low(places.modules);
  block.map_bytes = static_cast<uint32_t>(map_entries * sizeof(MapEntry));
  block.map = Low(places.map);
  block.loader_name = Low(places.loader_name);
  return block;
}

absl::Status WriteModules(const MultibootInfo& info, const Places& places,
                          const GuestMemory& memory) {
  for (size_t i = 0; i < info.modules.size(); ++i) {
    const MultibootModule& module = info.modules[i];
    const Gpa begin = places.module_bytes[i];
    RETURN_IF_ERROR(memory.Write(begin, module.bytes));
    RETURN_IF_ERROR(WriteString(places.module_command_lines[i], module.command_line, memory));
    const Module entry{.begin = Low(begin),
                       .end = Low(begin + module.bytes.size()),
                       .command_line = Low(places.module_command_lines[i]),
                       .reserved = 0};
    RETURN_IF_ERROR(WriteValue(places.modules + i * sizeof(Module), entry, memory));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Gpa> WriteMultibootInfo(const MultibootInfo& info, const GpaRange& image,
                                       const GuestMemory& memory) {
  const std::vector<MemoryMapEntry> map = BuildMemoryMap(memory);
  const uint64_t bytes = Place(info, map.size(), Gpa(0)).end;
  ASSIGN_OR_RETURN(const Gpa area, FindLoaderArea(bytes, image, memory));
  const Places places = Place(info, map.size(), area);
  RETURN_IF_ERROR(WriteValue(places.block, MakeBlock(info, places, map.size(), memory), memory));
  for (size_t i = 0; i < map.size(); ++i) {
    const MapEntry entry{.bytes_that_follow = sizeof(MapEntry) - sizeof(uint32_t),
                         .at = map[i].at.value,
                         .bytes = map[i].bytes,
                         .type = static_cast<uint32_t>(map[i].type)};
    RETURN_IF_ERROR(WriteValue(places.map + i * sizeof(MapEntry), entry, memory));
  }
  RETURN_IF_ERROR(WriteString(places.command_line, info.command_line, memory));
  RETURN_IF_ERROR(WriteString(places.loader_name, kLoaderName, memory));
  RETURN_IF_ERROR(WriteModules(info, places, memory));
  return places.block;
}

}  // namespace sipi
