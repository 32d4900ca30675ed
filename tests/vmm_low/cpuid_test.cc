// The topology in CPUID, on made-up tables of an Intel and an AMD host.

#include "vmm/cpu/cpuid.h"

#include <gtest/gtest.h>

#include <vector>

namespace sipi {
namespace {

using Table = std::vector<kvm_cpuid_entry2>;

kvm_cpuid_entry2 Entry(uint32_t leaf, uint32_t subleaf, uint32_t eax, uint32_t ebx, uint32_t ecx,
                       uint32_t edx) {
  kvm_cpuid_entry2 entry = {};
  entry.function = leaf;
  entry.index = subleaf;
  entry.eax = eax;
  entry.ebx = ebx;
  entry.ecx = ecx;
  entry.edx = edx;
  return entry;
}

Table IntelTable() {
  return {
      Entry(0x0, 0, 0x16, 0x756e6547, 0x6c65746e, 0x49656e69),  // GenuineIntel
      Entry(0x1, 0, 0x50654, 0x12080800, 0x00000001, 0x0),
      Entry(0x4, 0, 0x1c004121, 0, 0, 0),  // L1 data
      Entry(0x4, 1, 0x1c004143, 0, 0, 0),  // L2 unified
      Entry(0x4, 2, 0x1c03c163, 0, 0, 0),  // L3 unified
      Entry(0x4, 3, 0, 0, 0, 0),           // no more
      Entry(0xb, 0, 0, 0, 0, 0),           // all zero, as KVM gives it
      Entry(0x80000000, 0, 0x80000008, 0, 0, 0),
      Entry(0x80000008, 0, 0x3028, 0, 0, 0),
  };
}

Table AmdTable() {
  return {
      Entry(0x0, 0, 0x10, 0x68747541, 0x444d4163, 0x69746e65),  // AuthenticAMD
      Entry(0x1, 0, 0xa10f10, 0x12080800, 0x00000001, 0x0),
      Entry(0xb, 0, 0, 0, 0, 0),
      Entry(0x80000000, 0, 0x80000026, 0, 0, 0),
      Entry(0x80000001, 0, 0, 0, 0x1, 0),
      Entry(0x80000008, 0, 0x3030, 0, 0x30000, 0),
      Entry(0x8000001d, 0, 0x4121, 0, 0, 0),
      Entry(0x8000001d, 3, 0x4163, 0, 0, 0),
      Entry(0x8000001e, 0, 0xdead, 0xdead, 0xdead, 0),
      Entry(0x80000026, 0, 0x1, 0x2, 0x100, 0),
  };
}

kvm_cpuid_entry2 Leaf(const Table& table, uint32_t leaf, uint32_t subleaf = 0) {
  const kvm_cpuid_entry2* entry = FindCpuid(table, leaf, subleaf);
  EXPECT_NE(entry, nullptr) << std::hex << leaf << "." << subleaf;
  return entry != nullptr ? *entry : kvm_cpuid_entry2{};
}

Topology TwoBySixteenByTwo() { return *ParseTopology("sockets=2,cores=16,threads=2", 64); }

TEST(Cpuid, LeafOneHasTheIdTheCountAndTheFeatureBits) {
  const Table table = CpuidTemplate(IntelTable(), TwoBySixteenByTwo()).ForCpu(CpuNumber(63));
  const kvm_cpuid_entry2 leaf = Leaf(table, 1);
  EXPECT_EQ(leaf.ebx >> 24, 63u);
  EXPECT_EQ(leaf.ebx >> 16 & 0xff, 32u);
  EXPECT_EQ(leaf.ebx & 0xffff, 0x0800u);  // CLFLUSH size and brand as they were
  EXPECT_EQ(leaf.ecx, 1u << 31 | 1u << 24 | 1u << 21 | 1u);
  EXPECT_EQ(leaf.edx, 1u << 28);
}

TEST(Cpuid, LeafOneShowsTheLowEightBitsOfALongId) {
  Topology topology = FlatTopology(2);
  ASSERT_TRUE(SetApicIds("0,4095", topology).ok());
  const Table table = CpuidTemplate(IntelTable(), topology).ForCpu(CpuNumber(1));
  EXPECT_EQ(Leaf(table, 1).ebx >> 24, 0xffu);
  EXPECT_EQ(Leaf(table, 1).ebx >> 16 & 0xff, 0xffu);  // 4096 IDs do not fit 8 bits
  EXPECT_EQ(Leaf(table, 0xb, 0).edx, 4095u);
}

TEST(Cpuid, FeaturesThatAreSwitchedOffAreHidden) {
  const CpuidOptions options = {.x2apic = false, .tsc_deadline = false};
  const Table table = CpuidTemplate(IntelTable(), FlatTopology(1), options).ForCpu(CpuNumber(0));
  EXPECT_EQ(Leaf(table, 1).ecx, 1u << 31 | 1u);
  EXPECT_EQ(Leaf(table, 1).edx >> 28 & 1, 0u);  // one CPU: no HTT
}

TEST(Cpuid, LeafFourSharesCachesByCoreAndByDie) {
  const Table table = CpuidTemplate(IntelTable(), TwoBySixteenByTwo()).ForCpu(CpuNumber(0));
  EXPECT_EQ(Leaf(table, 4, 0).eax >> 14 & 0xfff, 1u);   // L1: the 2 threads of a core
  EXPECT_EQ(Leaf(table, 4, 1).eax >> 14 & 0xfff, 1u);   // L2
  EXPECT_EQ(Leaf(table, 4, 2).eax >> 14 & 0xfff, 31u);  // L3: the package
  EXPECT_EQ(Leaf(table, 4, 0).eax >> 26, 15u);          // 16 cores
  EXPECT_EQ(Leaf(table, 4, 0).eax & 0x3fff, 0x121u);
  EXPECT_EQ(FindCpuid(table, 4, 3), nullptr);  // no more caches: zeros, which KVM gives by itself
}

TEST(Cpuid, TopologyLeavesDescribeThreadsAndCores) {
  const Table table = CpuidTemplate(IntelTable(), TwoBySixteenByTwo()).ForCpu(CpuNumber(37));
  for (const uint32_t leaf : {0xbu, 0x1fu}) {
    EXPECT_EQ(Leaf(table, leaf, 0).eax, 1u);
    EXPECT_EQ(Leaf(table, leaf, 0).ebx, 2u);
    EXPECT_EQ(Leaf(table, leaf, 0).ecx, 0x100u);
    EXPECT_EQ(Leaf(table, leaf, 1).eax, 5u);
    EXPECT_EQ(Leaf(table, leaf, 1).ebx, 32u);
    EXPECT_EQ(Leaf(table, leaf, 1).ecx, 0x201u);
    EXPECT_EQ(Leaf(table, leaf, 2).ebx, 0u);
    EXPECT_EQ(Leaf(table, leaf, 2).ecx, 2u);
    for (uint32_t subleaf = 0; subleaf < 3; ++subleaf) {
      EXPECT_EQ(Leaf(table, leaf, subleaf).edx, 37u);
      EXPECT_NE(Leaf(table, leaf, subleaf).flags & KVM_CPUID_FLAG_SIGNIFCANT_INDEX, 0u);
    }
  }
  EXPECT_EQ(Leaf(table, 0).eax, 0x1fu);
}

TEST(Cpuid, DiesShowInLeaf1FOnly) {
  const Topology topology = *ParseTopology("sockets=2,dies=2,cores=4,threads=2", 32);
  const Table table = CpuidTemplate(IntelTable(), topology).ForCpu(CpuNumber(31));
  EXPECT_EQ(Leaf(table, 0x1f, 1).eax, 3u);  // core domain: shift to the die
  EXPECT_EQ(Leaf(table, 0x1f, 1).ebx, 8u);
  EXPECT_EQ(Leaf(table, 0x1f, 2).eax, 4u);  // die domain: shift to the package
  EXPECT_EQ(Leaf(table, 0x1f, 2).ebx, 16u);
  EXPECT_EQ(Leaf(table, 0x1f, 2).ecx, 0x502u);
  EXPECT_EQ(Leaf(table, 0x1f, 2).edx, 31u);
  EXPECT_EQ(Leaf(table, 0x1f, 3).ecx, 3u);
  EXPECT_EQ(Leaf(table, 0x1f, 3).edx, 31u);
  EXPECT_EQ(Leaf(table, 0xb, 1).eax, 4u);  // 0BH's core domain is the package
  EXPECT_EQ(Leaf(table, 0xb, 1).ebx, 16u);
  EXPECT_EQ(Leaf(table, 4, 2).eax >> 14 & 0xfff, 7u);  // L3 belongs to a die
  EXPECT_EQ(Leaf(table, 4, 2).eax >> 26, 7u);
}

TEST(Cpuid, GapsOfThreeByFiveByTwoShowInTheShifts) {
  const Topology topology = *ParseTopology("sockets=3,cores=5,threads=2", 30);
  const Table table = CpuidTemplate(IntelTable(), topology).ForCpu(CpuNumber(10));
  EXPECT_EQ(Leaf(table, 0xb, 1).eax, 4u);
  EXPECT_EQ(Leaf(table, 0xb, 1).ebx, 10u);
  EXPECT_EQ(Leaf(table, 0xb, 0).edx, 16u);
  EXPECT_EQ(Leaf(table, 1).ebx >> 16 & 0xff, 16u);  // IDs reserved, not CPUs
  EXPECT_EQ(Leaf(table, 4, 0).eax >> 26, 7u);       // likewise
  EXPECT_EQ(Leaf(table, 4, 2).eax >> 14 & 0xfff, 15u);
}

TEST(Cpuid, AmdLeavesHaveIdCoreNodeAndSizes) {
  const Topology topology = *ParseTopology("sockets=2,cores=16,threads=2,nodes=4", 64);
  const Table table = CpuidTemplate(AmdTable(), topology).ForCpu(CpuNumber(63));
  EXPECT_EQ(Leaf(table, 0x8000001e).eax, 63u);
  EXPECT_EQ(Leaf(table, 0x8000001e).ebx, 0x10fu);    // 2 threads in core 15
  EXPECT_EQ(Leaf(table, 0x8000001e).ecx, 0x103u);    // 2 nodes in the package, node 3
  EXPECT_EQ(Leaf(table, 0x80000008).ecx, 0x3501fu);  // 5 bits of IDs, 32 CPUs; the rest as it was
  EXPECT_EQ(Leaf(table, 0x80000001).ecx, 1u << 22 | 1u << 1 | 1u);
  EXPECT_EQ(Leaf(table, 0x8000001d, 0).eax >> 14 & 0xfff, 1u);
  EXPECT_EQ(Leaf(table, 0x8000001d, 3).eax >> 14 & 0xfff, 31u);
}

TEST(Cpuid, AmdLeafThatWouldContradictIsTakenOut) {
  const Table table = CpuidTemplate(AmdTable(), FlatTopology(2)).ForCpu(CpuNumber(0));
  EXPECT_EQ(FindCpuid(table, 0x80000026), nullptr);
  EXPECT_EQ(Leaf(table, 0x80000000).eax, 0x80000025u);
}

TEST(Cpuid, IntelGetsNoAmdLeaves) {
  const Table table = CpuidTemplate(IntelTable(), FlatTopology(2)).ForCpu(CpuNumber(0));
  EXPECT_EQ(FindCpuid(table, 0x8000001e), nullptr);
  EXPECT_EQ(Leaf(table, 0x80000008).ecx, 0u);
}

TEST(Cpuid, LyingFirmwareShowsTheOtherIdInEveryLeaf) {
  const CpuidTemplate cpuid(AmdTable(), FlatTopology(64));
  const ApicId lie = FirmwareLie(ApicId(20));
  EXPECT_EQ(lie, ApicId(4));
  const Table table = cpuid.ForCpu(CpuNumber(20), lie);
  EXPECT_EQ(Leaf(table, 1).ebx >> 24, 4u);
  EXPECT_EQ(Leaf(table, 0xb, 0).edx, 4u);
  EXPECT_EQ(Leaf(table, 0x1f, 1).edx, 4u);
  EXPECT_EQ(Leaf(table, 0x8000001e).eax, 4u);
  EXPECT_EQ(Leaf(cpuid.ForCpu(CpuNumber(20)), 0xb, 0).edx, 20u);  // the template is untouched
}

TEST(Cpuid, TscFrequencyHasALeafIfGiven) {
  const CpuidOptions options = {.tsc_khz = 2596144};
  const Table table = CpuidTemplate(IntelTable(), FlatTopology(1), options).ForCpu(CpuNumber(0));
  EXPECT_EQ(Leaf(table, 0x40000010).eax, 2596144u);
  EXPECT_EQ(Leaf(table, 0x40000000).eax, 0x40000010u);
  const Table without = CpuidTemplate(IntelTable(), FlatTopology(1)).ForCpu(CpuNumber(0));
  EXPECT_EQ(FindCpuid(without, 0x40000010), nullptr);
}

}  // namespace
}  // namespace sipi
