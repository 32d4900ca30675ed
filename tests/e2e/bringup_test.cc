// Every strategy and knob brings every CPU up, on each irqchip: `sipi run` from outside.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <tuple>

#include "tests/e2e/command.h"

namespace sipi::e2e {
namespace {

using nlohmann::json;

void ExpectAllOnline(const RunResult& run, uint32_t cpus) {
  ASSERT_EQ(run.finished.status, 0) << run.finished.err << run.finished.out;
  EXPECT_EQ(run.json["cpus_offered"], cpus);
  EXPECT_EQ(run.json["cpus_online"], cpus);
  EXPECT_EQ(run.json["lost_events"], 0);
  EXPECT_EQ(run.json["complete"], true);
  ASSERT_EQ(run.json["cpus"].size(), cpus);
}

// What holds of any timeline: a CPU is kicked, runs, is alive, is online, in this order.
void ExpectOrderPerCpu(const json& run) {
  for (const json& cpu : run["cpus"]) {
    if (cpu["cpu"] == 0) continue;
    const int64_t kicked = cpu["kicked_ns"], first = cpu["first_instruction_ns"],
                  alive = cpu["alive_ns"], online = cpu["online_ns"];
    EXPECT_LE(kicked, first) << cpu;
    EXPECT_LE(first, alive) << cpu;
    EXPECT_LE(alive, online) << cpu;
  }
}

using Point = std::tuple<const char*, const char*, int>;
class EveryStrategy : public testing::TestWithParam<Point> {};

TEST_P(EveryStrategy, BringsAllOnline) {
  SKIP_WITHOUT_KVM();
  const auto [strategy, irqchip, cpus] = GetParam();
  const RunResult run =
      SipiRun({"--cpus=" + std::to_string(cpus), std::string("--strategy=") + strategy,
               std::string("--irqchip=") + irqchip, "--topology=threads=1"});
  ExpectAllOnline(run, static_cast<uint32_t>(cpus));
  ExpectOrderPerCpu(run.json);
  EXPECT_EQ(run.json["strategy"], strategy);
  EXPECT_EQ(run.json["irqchip"], irqchip);
}

INSTANTIATE_TEST_SUITE_P(
    Matrix, EveryStrategy,
    testing::Combine(testing::Values("serial", "kick", "kick+wait", "primary-first", "full",
                                     "broadcast", "tree", "full+reuse", "serial+reuse+overlap"),
                     testing::Values("user", "split", "kernel"), testing::Values(2, 3, 64, 255)));

// Two threads a core where that divides.
std::string Topology(const std::string& cpus) {
  return std::stoi(cpus) % 2 == 0 ? "--topology=threads=2" : "--topology=threads=1";
}

// CI takes a part of the matrix; SIPI_E2E_FULL=1 takes the whole (half an hour on two cores).
bool WholeMatrix() { return getenv("SIPI_E2E_FULL") != nullptr; }
std::vector<const char*> KnobStrategies() {
  if (!WholeMatrix()) return {"kick", "full"};
  return {"serial", "kick", "kick+wait", "primary-first", "full", "broadcast", "tree"};
}
std::vector<const char*> KnobCpus(std::string_view strategy) {
  if (WholeMatrix()) return {"2", "3", "64", "255"};
  return {strategy == "full" ? "64" : "3"};
}

class EveryKnob : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(EveryKnob, BringsAllOnline) {
  SKIP_WITHOUT_KVM();
  const auto [knob, irqchip] = GetParam();
  for (const char* strategy : KnobStrategies()) {
    for (const char* cpus : KnobCpus(strategy)) {
      const RunResult run = SipiRun({std::string("--cpus=") + cpus, Topology(cpus),
                                     std::string("--strategy=") + strategy,
                                     std::string("--irqchip=") + irqchip, knob});
      ExpectAllOnline(run, static_cast<uint32_t>(std::stoi(cpus)));
      ExpectOrderPerCpu(run.json);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Knobs, EveryKnob,
    testing::Combine(testing::Values("--init-delay-us=100", "--sipi-count=1",
                                     "--sipi-delay-us=300+200", "--init-deassert",
                                     "--trampoline-lock=off", "--ap-wait=spin", "--apic=xapic",
                                     "--ap-id=cpuid-b", "--ap-id=cpuid-1",
                                     "--cache-setup=rendezvous", "--topology-update=lockless",
                                     "--tsc-check=on", "--order=reverse", "--order=node",
                                     "--order=siblings-last", "--order=random", "--veto=vendor",
                                     "--clock=known", "--driver=host", "--calibration-us=300",
                                     "--scenario=ipi-all"),
                     testing::Values("user", "split", "kernel")));

class ReuseScope : public testing::TestWithParam<const char*> {};

// How many CPUs calibrate themselves follows from the scope: 2 packages x 4 cores x 2 threads.
TEST_P(ReuseScope, DecidesWhoCalibrates) {
  SKIP_WITHOUT_KVM();
  const std::string scope = GetParam();
  const RunResult run = SipiRun({"--cpus=16", "--topology=sockets=2,cores=4,threads=2",
                                 "--strategy=serial+reuse", "--reuse-scope=" + scope});
  ExpectAllOnline(run, 16);
  int calibrated = 0;
  for (const json& event : run.json["events"]) calibrated += event["name"] == "calibrate-end";
  const std::map<std::string, int> expected{
      {"cpu", 16}, {"core", 8}, {"package", 2}, {"machine", 1}};
  EXPECT_EQ(calibrated, expected.at(scope));
}

INSTANTIATE_TEST_SUITE_P(Scopes, ReuseScope, testing::Values("cpu", "core", "package", "machine"));

class Largest : public testing::TestWithParam<const char*> {};

TEST_P(Largest, AThousandAndTwentyFourComeUp) {
  SKIP_WITHOUT_KVM();
  const RunResult run =
      SipiRun({"--cpus=1024", std::string("--irqchip=") + GetParam(), "--strategy=full"});
  ExpectAllOnline(run, 1024);
}

INSTANTIATE_TEST_SUITE_P(Irqchips, Largest, testing::Values("user", "split", "kernel"));

TEST(XApic, GoesUpTo255Cpus) {
  SKIP_WITHOUT_KVM();
  for (const char* irqchip : {"--irqchip=user", "--irqchip=kernel"}) {
    ExpectAllOnline(SipiRun({"--cpus=255", "--apic=xapic", irqchip, "--strategy=full"}), 255);
  }
}

TEST(Topology, TwoSocketsOfSixteenCoresOfTwoThreadsHaveTheirIds) {
  SKIP_WITHOUT_KVM();
  const RunResult run =
      SipiRun({"--cpus=64", "--topology=sockets=2,cores=16,threads=2", "--strategy=full"});
  ExpectAllOnline(run, 64);
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(run.json["cpus"][i]["apic_id"], i);
}

TEST(Topology, SparseIdsComeUpWithDenseNumbers) {
  SKIP_WITHOUT_KVM();
  for (const char* irqchip : {"--irqchip=user", "--irqchip=kernel"}) {
    const RunResult run = SipiRun({"--cpus=5", "--apic-ids=7,0,254,256,4095", irqchip,
                                   "--strategy=full", "--scenario=ipi-all"});
    ExpectAllOnline(run, 5);
    const std::vector<uint32_t> ids{7, 0, 254, 256, 4095};
    for (uint32_t i = 0; i < 5; ++i) EXPECT_EQ(run.json["cpus"][i]["apic_id"], ids[i]);
  }
}

// G3: every primary is alive before any sibling is kicked.
TEST(PrimaryFirst, KicksNoSiblingBeforeThePrimariesAreOnline) {
  SKIP_WITHOUT_KVM();
  const RunResult run =
      SipiRun({"--cpus=32", "--topology=cores=16,threads=2", "--strategy=primary-first"});
  ExpectAllOnline(run, 32);
  int64_t last_primary_online = 0, first_sibling_kicked = INT64_MAX;
  for (const json& cpu : run.json["cpus"]) {
    const uint32_t number = cpu["cpu"];
    if (number == 0) continue;
    if (number % 2 == 0)
      last_primary_online = std::max(last_primary_online, cpu["online_ns"].get<int64_t>());
    if (number % 2 == 1)
      first_sibling_kicked = std::min(first_sibling_kicked, cpu["kicked_ns"].get<int64_t>());
  }
  EXPECT_LT(last_primary_online, first_sibling_kicked);
}

TEST(Veto, FallsBackToSerialAndSaysWhy) {
  SKIP_WITHOUT_KVM();
  const RunResult run = SipiRun({"--cpus=4", "--strategy=full", "--veto=vendor"});
  ExpectAllOnline(run, 4);
  EXPECT_NE((run.finished.out + run.finished.err).find("vendor"), std::string::npos)
      << run.finished.out;
  for (size_t i = 2; i < 4; ++i) {  // a staircase: each is kicked once its predecessor is online
    EXPECT_GE(run.json["cpus"][i]["kicked_ns"], run.json["cpus"][i - 1]["online_ns"]);
  }
}

// Counts of INITs and SIPIs are those of the sequence, whoever sends them.
TEST(Counts, OfInitsAndSipisAreTheSequences) {
  SKIP_WITHOUT_KVM();
  for (const char* strategy : {"serial", "kick", "full", "tree"}) {
    const RunResult run = SipiRun({"--cpus=16", std::string("--strategy=") + strategy});
    ExpectAllOnline(run, 16);
    EXPECT_EQ(run.json["counters"]["guest.inits"], 15) << strategy;
    EXPECT_EQ(run.json["counters"]["guest.startups"], 30) << strategy;
  }
  const RunResult broadcast = SipiRun({"--cpus=16", "--strategy=broadcast"});
  EXPECT_EQ(broadcast.json["counters"]["guest.inits"], 1);
  EXPECT_EQ(broadcast.json["counters"]["guest.startups"], 2);
}

}  // namespace
}  // namespace sipi::e2e
