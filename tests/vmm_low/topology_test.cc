#include "vmm/cpu/topology.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace sipi {
namespace {

std::vector<uint32_t> Ids(const Topology& topology) {
  std::vector<uint32_t> ids;
  for (const CpuPlace& place : topology.places) ids.push_back(place.apic_id.value);
  return ids;
}

bool Contains(const absl::Status& status, const std::string& text) {
  return std::string(status.message()).find(text) != std::string::npos;
}

TEST(FlatTopology, HasDenseIdsAndOneThreadPerCore) {
  const Topology topology = FlatTopology(5);
  EXPECT_EQ(Ids(topology), (std::vector<uint32_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(topology.core_shift, 0u);
  EXPECT_EQ(topology.package_shift, 3u);
  EXPECT_EQ(topology.CoreIndex(CpuNumber(4)), 4u);
  EXPECT_EQ(FlatTopology(1).package_shift, 0u);
}

TEST(ParseTopology, TwoSocketsSixteenCoresTwoThreads) {
  const auto topology = ParseTopology("sockets=2,cores=16,threads=2", 64);
  ASSERT_TRUE(topology.ok()) << topology.status();
  ASSERT_EQ(topology->cpu_count(), 64u);
  EXPECT_EQ(topology->core_shift, 1u);
  EXPECT_EQ(topology->die_shift, 5u);
  EXPECT_EQ(topology->package_shift, 5u);
  for (uint32_t cpu = 0; cpu < 64; ++cpu) {
    const CpuPlace& place = topology->places[cpu];
    EXPECT_EQ(place.apic_id.value, cpu);
    EXPECT_EQ(place.package, cpu / 32);
    EXPECT_EQ(place.core, cpu % 32 / 2);
    EXPECT_EQ(place.thread, cpu % 2);
    EXPECT_EQ(topology->CoreIndex(CpuNumber(cpu)), cpu / 2);
  }
}

TEST(ParseTopology, ThreeByFiveByTwoLeavesGapsInTheIds) {
  const auto topology = ParseTopology("sockets=3,cores=5,threads=2", 0);
  ASSERT_TRUE(topology.ok()) << topology.status();
  ASSERT_EQ(topology->cpu_count(), 30u);
  EXPECT_EQ(topology->package_shift, 4u);  // 1 bit of threads, 3 of cores
  EXPECT_EQ(topology->places[9].apic_id, ApicId(9));
  EXPECT_EQ(topology->places[10].apic_id, ApicId(16));
  EXPECT_EQ(topology->places[29].apic_id, ApicId(41));
  EXPECT_EQ(topology->max_apic_id(), ApicId(41));
  EXPECT_EQ(topology->CoreIndex(CpuNumber(29)), 14u);
}

TEST(ParseTopology, DiesHaveAFieldOfTheirOwn) {
  const auto topology = ParseTopology("sockets=2,dies=3,cores=2,threads=2", 24);
  ASSERT_TRUE(topology.ok()) << topology.status();
  EXPECT_EQ(topology->die_shift, 2u);
  EXPECT_EQ(topology->package_shift, 4u);
  const CpuPlace& last = topology->places[23];
  EXPECT_EQ(last.apic_id, ApicId(1 << 4 | 2 << 2 | 1 << 1 | 1));
  EXPECT_EQ(last.die, 2u);
}

TEST(ParseTopology, MissingFieldIsDerivedFromTheNumberOfCpus) {
  EXPECT_EQ(ParseTopology("threads=2", 8)->cores_per_die, 4u);
  EXPECT_EQ(ParseTopology("sockets=2", 8)->cores_per_die, 4u);
  EXPECT_EQ(ParseTopology("cores=4", 8)->sockets, 2u);
  EXPECT_EQ(Ids(*ParseTopology("", 3)), Ids(FlatTopology(3)));
  EXPECT_EQ(ParseTopology("sockets=2", 0)->cpu_count(), 2u);
}

TEST(ParseTopology, SiblingsLastNumbersAllPrimariesFirst) {
  const auto topology = ParseTopology("cores=3,threads=2,numbering=siblings-last", 6);
  ASSERT_TRUE(topology.ok()) << topology.status();
  EXPECT_EQ(Ids(*topology), (std::vector<uint32_t>{0, 2, 4, 1, 3, 5}));
  EXPECT_EQ(topology->CoreIndex(CpuNumber(3)), 0u);
}

TEST(ParseTopology, StrideMultipliesTheIds) {
  const auto two = ParseTopology("sockets=2,cores=2,threads=2,stride=2", 8);
  ASSERT_TRUE(two.ok()) << two.status();
  EXPECT_EQ(Ids(*two), (std::vector<uint32_t>{0, 2, 4, 6, 8, 10, 12, 14}));
  EXPECT_EQ(two->core_shift, 2u);
  EXPECT_EQ(two->package_shift, 3u);
  const auto three = ParseTopology("stride=3", 4);
  ASSERT_TRUE(three.ok()) << three.status();
  EXPECT_EQ(Ids(*three), (std::vector<uint32_t>{0, 3, 6, 9}));
  EXPECT_EQ(three->package_shift, 4u);
}

TEST(ParseTopology, NodesShareTheCoresEvenly) {
  const auto topology = ParseTopology("sockets=2,cores=2,threads=2,nodes=4", 8);
  ASSERT_TRUE(topology.ok()) << topology.status();
  EXPECT_EQ(topology->places[1].node, 0u);
  EXPECT_EQ(topology->places[2].node, 1u);
  EXPECT_EQ(topology->places[7].node, 3u);
}

TEST(ParseTopology, ErrorsNameTheFieldAndTheRemedy) {
  EXPECT_TRUE(Contains(ParseTopology("scokets=2", 0).status(), "scokets=2"));
  EXPECT_TRUE(Contains(ParseTopology("cores=0", 0).status(), "cores=0"));
  EXPECT_TRUE(Contains(ParseTopology("cores=-1", 0).status(), "cores=-1"));
  EXPECT_TRUE(Contains(ParseTopology("cores=abc", 0).status(), "cores=abc"));
  EXPECT_TRUE(Contains(ParseTopology("cores=99999999999", 0).status(), "65536"));
  EXPECT_TRUE(Contains(ParseTopology("cores", 0).status(), "cores="));
  EXPECT_TRUE(Contains(ParseTopology("cores=2,cores=2", 0).status(), "twice"));
  EXPECT_TRUE(Contains(ParseTopology("numbering=odd", 0).status(), "siblings-last"));
  EXPECT_TRUE(Contains(ParseTopology("cores=2,,", 0).status(), "not a field"));
  EXPECT_TRUE(Contains(ParseTopology("cores=3,nodes=2", 0).status(), "nodes=2"));
  EXPECT_TRUE(Contains(ParseTopology("threads=2,stride=3", 4).status(), "stride=3"));
  EXPECT_TRUE(Contains(ParseTopology("sockets=65536,cores=65536", 0).status(), "65536"));
  // 2^64 CPUs.
  const char* const huge = "sockets=65536,dies=65536,cores=65536,threads=65536";
  EXPECT_TRUE(Contains(ParseTopology(huge, 0).status(), "at most 65536 are possible"));
  EXPECT_TRUE(Contains(ParseTopology(huge, 4).status(), "at most 65536 are possible"));
  // What a terminal would obey is not echoed.
  for (const char* spec : {"\x1b[2J=1", "cores=\x1b[2J", "numbering=\x1b[2J"}) {
    EXPECT_TRUE(Contains(ParseTopology(spec, 0).status(), "?[2J")) << spec;
    EXPECT_FALSE(Contains(ParseTopology(spec, 0).status(), "\x1b")) << spec;
  }
}

TEST(ParseTopology, ProductMismatchNamesBothNumbers) {
  const absl::Status all = ParseTopology("sockets=2,cores=3", 8).status();
  EXPECT_TRUE(Contains(all, "6 CPUs")) << all;
  EXPECT_TRUE(Contains(all, "--cpus=8")) << all;
  const absl::Status derived = ParseTopology("threads=2", 7).status();
  EXPECT_TRUE(Contains(derived, "--cpus=7")) << derived;
}

TEST(SetApicIds, ExplicitListWithABootCpuThatIsNotZero) {
  Topology topology = FlatTopology(5);
  ASSERT_TRUE(SetApicIds("7,0,254,256,4095", topology).ok());
  EXPECT_EQ(Ids(topology), (std::vector<uint32_t>{7, 0, 254, 256, 4095}));
  EXPECT_EQ(topology.package_shift, 12u);
  EXPECT_EQ(topology.sockets, 1u);
  EXPECT_EQ(topology.threads_per_core, 1u);
  std::set<uint32_t> cores;
  for (uint32_t cpu = 0; cpu < 5; ++cpu) cores.insert(topology.CoreIndex(CpuNumber(cpu)));
  EXPECT_EQ(cores, (std::set<uint32_t>{0, 1, 2, 3, 4}));
}

TEST(SetApicIds, PlacesFollowFromTheBitsOfTheIds) {
  Topology topology = *ParseTopology("sockets=2,cores=2,threads=2", 8);
  ASSERT_TRUE(SetApicIds("9,8,16,17,18,19,27,26", topology).ok());
  EXPECT_EQ(topology.sockets, 3u);  // IDs 8 to 11, 16 to 19, 24 to 27
  EXPECT_EQ(topology.places[0].package, 0u);
  EXPECT_EQ(topology.places[4].core, 1u);
  EXPECT_EQ(topology.places[6].thread, 1u);
  EXPECT_EQ(topology.places[7].thread, 0u);
}

// SMT control switches secondary threads off, and the boot CPU cannot go.
TEST(SetApicIds, TheBootCpuIsThePrimaryThreadOfItsCore) {
  Topology topology = *ParseTopology("cores=2,threads=4", 8);
  ASSERT_TRUE(SetApicIds("6,4,5,7,3,2,1,0", topology).ok());
  const auto threads = [&topology] {
    std::vector<uint32_t> all;
    for (const CpuPlace& place : topology.places) all.push_back(place.thread);
    return all;
  };
  EXPECT_EQ(threads(), (std::vector<uint32_t>{0, 2, 1, 3, 3, 2, 1, 0}));
}

TEST(SetApicIds, SiblingAloneInItsCoreIsThePrimary) {
  Topology topology = *ParseTopology("cores=2,threads=2", 4);
  ASSERT_TRUE(SetApicIds("0,1,3,5", topology).ok());
  EXPECT_EQ(topology.places[2].thread, 0u);
  EXPECT_EQ(topology.CoreIndex(CpuNumber(3)), 2u);
}

TEST(SetApicIds, ErrorsNameTheTrouble) {
  Topology topology = FlatTopology(3);
  EXPECT_TRUE(Contains(SetApicIds("0,1", topology), "2 in the list for 3 CPUs"));
  EXPECT_TRUE(Contains(SetApicIds("0,5,5", topology), "5 stands twice"));
  EXPECT_TRUE(Contains(SetApicIds("0,x,2", topology), "'x'"));
  EXPECT_TRUE(Contains(SetApicIds("0,1,4294967295", topology), "4294967294"));
  EXPECT_EQ(Ids(topology), (std::vector<uint32_t>{0, 1, 2}));
}

}  // namespace
}  // namespace sipi
