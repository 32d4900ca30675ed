// A seed replays a run: the same bytes, whatever the host, the compiler and what ran before.
#include <gtest/gtest.h>

#include "tests/sim/simulated.h"
#include "vmm/report/run_json.h"

namespace sipi {
namespace {

using sequence::StrategyId;

// FNV-1a, 64 bits.
uint64_t HashOf(const std::string& bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

RunConfig ServerConfig(StrategyId strategy, uint64_t seed) {
  RunConfig config = WithTopology(SimulatedConfig(0, strategy),
                                  "sockets=2,cores=4,threads=2,numbering=siblings-last");
  config.profile = *LoadProfile("server-128");
  config.seed = seed;
  return config;
}

TEST(Replay, TheSameSeedGivesTheSameBytesAndAnotherOneDoesNot) {
  for (const StrategyId strategy : kAllStrategies) {
    const std::string first = RunJson(RunIt(ServerConfig(strategy, 1)));
    EXPECT_EQ(first, RunJson(RunIt(ServerConfig(strategy, 1))));
    EXPECT_NE(first, RunJson(RunIt(ServerConfig(strategy, 2))));
  }
}

TEST(Replay, WithoutJitterNorRaceTheSeedChangesNothing) {
  RunConfig config = SimulatedConfig(8, StrategyId::kFull);
  RunRecord first = RunIt(config);
  config.seed = 99;
  RunRecord second = RunIt(config);
  second.seed = first.seed;
  EXPECT_EQ(RunJson(first), RunJson(second));
}

// Across hosts, compilers and levels of optimisation: what the bytes were when this was written. A
// change of the guest, the costs or the format changes them, and then the new value belongs here.
TEST(Replay, TheBytesAreThoseOfEveryOtherBuild) {
  const RunRecord record = RunIt(ServerConfig(StrategyId::kFull, 42));
  std::string timeline;
  for (const Event& e : record.events) {
    for (const int64_t field : {e.t_ns, int64_t{e.cpu}, static_cast<int64_t>(e.name),
                                int64_t{e.target}, int64_t{e.value}}) {
      timeline += std::to_string(field) + " ";
    }
  }
  EXPECT_EQ(HashOf(timeline), 14510467567170810390u);
}

}  // namespace
}  // namespace sipi
