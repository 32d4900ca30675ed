#include "vmm/load/pvh.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "guest/abi/layout.h"

namespace sipi {
namespace {

constexpr uint64_t kMib = 1 << 20;
constexpr uint64_t kGib = 1ull << 30;

void ExpectSortedWithoutOverlap(const std::vector<MemoryMapEntry>& map) {
  for (size_t i = 1; i < map.size(); ++i) {
    EXPECT_GE(map[i].at.value, map[i - 1].at.value + map[i - 1].bytes) << i;
  }
}

TEST(MemoryMap, SmallRam) {
  const auto map = BuildMemoryMap(*GuestMemory::Create(16 * kMib));
  ASSERT_EQ(map.size(), 4u);
  ExpectSortedWithoutOverlap(map);
  EXPECT_EQ(map[0].bytes, 0x9fc00u);
  EXPECT_EQ(map[0].type, MemoryMapType::kRam);
  EXPECT_EQ(map[1].type, MemoryMapType::kReserved);
  EXPECT_EQ(map[2].at, Gpa(kMib));
  EXPECT_EQ(map[2].bytes, 15 * kMib);
  EXPECT_EQ(map[3].at, Gpa(3 * kGib));
  EXPECT_EQ(map[3].type, MemoryMapType::kReserved);
}

TEST(MemoryMap, RamOnBothSidesOfTheHole) {
  const auto map = BuildMemoryMap(*GuestMemory::Create(5 * kGib));
  ASSERT_EQ(map.size(), 5u);
  ExpectSortedWithoutOverlap(map);
  EXPECT_EQ(map[2].bytes, 3 * kGib - kMib);
  EXPECT_EQ(map[3].bytes, kGib);
  EXPECT_EQ(map[4].at, Gpa(4 * kGib));
  EXPECT_EQ(map[4].bytes, 2 * kGib);
  EXPECT_EQ(map[4].type, MemoryMapType::kRam);
}

TEST(PvhInfo, IsWrittenAsVersionOneWithModulesAndCommandLine) {
  const GuestMemory memory = *GuestMemory::Create(16 * kMib);
  const Gpa at(abi::kPvhInfoGpa);
  const PvhInfo info = {
      .command_line = "quiet", .modules = {{Gpa(abi::kParamsGpa), 1234}}, .rsdp = Gpa(0xe0000)};
  ASSERT_EQ(*WritePvhInfo(info, at, memory), at);
  const auto word32 = [&](uint64_t offset) { return **memory.At<uint32_t>(at + offset); };
  const auto word64 = [&](uint64_t offset) { return **memory.At<uint64_t>(at + offset); };
  EXPECT_EQ(word32(0), 0x336ec578u);
  EXPECT_EQ(word32(4), 1u);   // version
  EXPECT_EQ(word32(8), 0u);   // flags
  EXPECT_EQ(word32(12), 1u);  // modules
  const Gpa modules(word64(16));
  const Gpa command_line(word64(24));
  EXPECT_EQ(word64(32), 0xe0000u);
  const Gpa map(word64(40));
  EXPECT_EQ(word32(48), 4u);  // entries of the memory map
  EXPECT_EQ(**memory.At<uint64_t>(modules), abi::kParamsGpa);
  EXPECT_EQ(**memory.At<uint64_t>(modules + 8), 1234u);
  EXPECT_STREQ(reinterpret_cast<const char*>(memory.Pointer(command_line, 6)), "quiet");
  EXPECT_EQ(**memory.At<uint64_t>(map + 8), 0x9fc00u);
  EXPECT_EQ(**memory.At<uint32_t>(map + 16), 1u);
}

TEST(PvhInfo, CommandLineThatDoesNotFitIsRefusedWithBothNumbers) {
  const GuestMemory memory = *GuestMemory::Create(kMib);
  const auto status =
      WritePvhInfo({.command_line = std::string(5000, 'x')}, Gpa(0x1000), memory).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(status.message()).find("5000"), std::string::npos);
  EXPECT_NE(std::string(status.message()).find("4096"), std::string::npos);
  EXPECT_TRUE(WritePvhInfo({.command_line = std::string(3900, 'x')}, Gpa(0x1000), memory).ok());
}

TEST(PvhInfo, NoRamThereIsAnError) {
  const GuestMemory memory = *GuestMemory::Create(kMib);
  EXPECT_EQ(WritePvhInfo({}, Gpa(kMib), memory).status().code(), absl::StatusCode::kOutOfRange);
}

TEST(PvhEntryState, IsFlatProtectedModeWithPagingAndInterruptsOff) {
  kvm_regs regs = {};
  regs.rflags = 0x202;
  kvm_sregs sregs = {};
  sregs.cr0 = 0x80000011;
  sregs.efer = 0x500;
  sregs.apic_base = 0xfee00900;
  SetPvhEntryState(Gpa(0x100010), Gpa(0x1000), regs, sregs);
  EXPECT_EQ(regs.rip, 0x100010u);
  EXPECT_EQ(regs.rbx, 0x1000u);
  EXPECT_EQ(regs.rflags, 2u);
  EXPECT_EQ(sregs.cr0, 0x11u);
  EXPECT_EQ(sregs.efer, 0u);
  EXPECT_EQ(sregs.cs.limit, 0xffffffffu);
  EXPECT_EQ(sregs.cs.type, 0xb);
  EXPECT_EQ(sregs.cs.db, 1);
  EXPECT_EQ(sregs.cs.l, 0);
  EXPECT_EQ(sregs.ss.type, 3);
  EXPECT_EQ(sregs.tr.limit, 0x67u);
  EXPECT_EQ(sregs.apic_base, 0xfee00900u);  // not the ABI's business
}

}  // namespace
}  // namespace sipi
