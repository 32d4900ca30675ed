// Exploration of the right code, and what its cases are drawn from.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/support/sanitized.h"
#include "vmm/explore/explorer.h"

namespace sipi {
namespace {

TEST(Explore, TwentyThousandSchedulesOfTheRightCodeFindNothing) {
  Explorer explorer;
  for (uint64_t seed = 1; seed <= 20'000; seed += kSanitized ? 10 : 1) {
    const ExploreCase explored = CaseOf(seed, {});
    ASSERT_EQ(explorer.Run(explored), "") << Describe(explored);
  }
}

TEST(Explore, EveryStrategyAndKindOfTroubleIsDrawn) {
  std::set<sequence::StrategyId> strategies;
  std::set<uint32_t> sizes;
  uint64_t harmless = 0;
  uint64_t buffered = 0;
  uint64_t lying = 0;
  for (uint64_t seed = 1; seed <= 2'000; ++seed) {
    const ExploreCase drawn = CaseOf(seed, {});
    strategies.insert(drawn.config.strategy.id);
    sizes.insert(drawn.config.cpus);
    buffered += drawn.chaos.store_buffer ? 1u : 0u;
    lying += drawn.firmware_lies ? 1u : 0u;
    harmless += drawn.chaos.dead_ap == sim::Rate::kOff && !drawn.doomed_cpu ? 1u : 0u;
  }
  EXPECT_EQ(strategies.size(), size_t{sequence::kStrategyCount});
  EXPECT_EQ(sizes, (std::set<uint32_t>{2, 3, 4, 5, 8}));
  EXPECT_GT(buffered, 800u);
  EXPECT_GT(lying, 20u);
  EXPECT_GT(harmless, 1'000u);
}

TEST(Explore, PlacesIdsAndOrdersAreDrawn) {
  uint64_t packages = 0;
  uint64_t shuffled = 0;
  uint64_t wide = 0;
  uint64_t orders = 0;
  uint64_t siblings = 0;
  for (uint64_t seed = 1; seed <= 2'000; ++seed) {
    ExploreCase drawn = CaseOf(seed, {});
    while (true) {
      SCOPED_TRACE(Describe(drawn));
      const RunConfig& config = drawn.config;
      const std::vector<CpuPlace>& places = config.topology.places;
      ASSERT_EQ(places.size(), config.cpus);
      EXPECT_EQ(places[0].thread, 0u);
      std::set<uint32_t> ids;
      std::set<std::pair<uint32_t, uint32_t>> threads;
      std::set<uint32_t> primaries;
      for (const CpuPlace& place : places) {
        ids.insert(place.apic_id.value);
        threads.emplace(place.core_index, place.thread);
        if (place.thread == 0) primaries.insert(place.core_index);
        EXPECT_LT(place.core_index, config.cpus);
        EXPECT_LT(place.package, config.cpus);
      }
      EXPECT_EQ(ids.size(), config.cpus);
      EXPECT_EQ(threads.size(), config.cpus);
      for (const CpuPlace& place : places) EXPECT_EQ(primaries.count(place.core_index), 1u);
      if (config.apic_mode == abi::ApicMode::kXApic) {
        EXPECT_LT(*ids.rbegin(), 255u);
      }
      std::vector<uint32_t> order = config.order;
      orders += std::is_sorted(order.begin(), order.end()) ? 0u : 1u;
      std::sort(order.begin(), order.end());
      ASSERT_EQ(order.size(), config.cpus - 1);
      for (uint32_t cpu = 1; cpu < config.cpus; ++cpu) EXPECT_EQ(order[cpu - 1], cpu);
      wide += *ids.rbegin() > 255 ? 1u : 0u;
      shuffled += *ids.begin() != places[0].apic_id.value ? 1u : 0u;
      packages += std::any_of(places.begin(), places.end(),
                              [](const CpuPlace& place) { return place.package != 0; })
                      ? 1u
                      : 0u;
      siblings += threads.rbegin()->second;
      if (!LeaveOut("cpu", drawn)) break;  // what is left is as right
    }
  }
  EXPECT_GT(packages, 300u);
  EXPECT_GT(shuffled, 300u);
  EXPECT_GT(wide, 200u);
  EXPECT_GT(orders, 300u);
  EXPECT_GT(siblings, 300u);
}

// Case G4 and its kind: an AP stands still for longer than it is waited for, after its first
// instruction or anywhere, is given up and goes on; bounds so short that the schedule does that.
// Once the faults have ended it comes up like everybody else.
TEST(Explore, LateApsOfAllKindsAreDrawn) {
  std::set<uint32_t> bounds;
  uint64_t frozen = 0;
  uint64_t frozen_ap = 0;
  for (uint64_t seed = 1; seed <= 2'000; ++seed) {
    const ExploreCase drawn = CaseOf(seed, {});
    bounds.insert(drawn.config.knobs.handshake_timeout_ms);
    EXPECT_EQ(drawn.short_bound, drawn.config.knobs.handshake_timeout_ms < 10'000);
    frozen += drawn.chaos.frozen != sim::Rate::kOff ? 1u : 0u;
    frozen_ap += drawn.chaos.frozen_ap != sim::Rate::kOff ? 1u : 0u;
  }
  EXPECT_GT(bounds.size(), 5u);
  EXPECT_GT(frozen, 100u);
  EXPECT_GT(frozen_ap, 100u);
}

struct Late {
  const char* name;
  void (*change)(ExploreCase& drawn);
};

TEST(Explore, WhoFreezesIsGivenUpAndComesUpOnceTheFaultsHaveEnded) {
  const Late kinds[] = {
      {"APs freeze", [](ExploreCase& c) { c.chaos.frozen_ap = sim::Rate::kWild; }},
      {"anybody freezes", [](ExploreCase& c) { c.chaos.frozen = sim::Rate::kWild; }},
      {"bound of 1 ms",
       [](ExploreCase& c) {
         c.short_bound = true;
         c.config.knobs.handshake_timeout_ms = 1;
         c.chaos.schedule = sim::Schedule::kSlowdowns;
       }},
  };
  Explorer explorer;
  for (const Late& late : kinds) {
    uint64_t given_up = 0;
    for (uint64_t seed = 1; seed <= 3'000; seed += kSanitized ? 10 : 1) {
      ExploreCase drawn = CaseOf(seed, {});
      late.change(drawn);
      drawn.config.clock_known = true;
      drawn.config.retry = true;
      ASSERT_EQ(explorer.Run(drawn), "") << late.name << ": " << Describe(drawn);
      const std::string told = explorer.Trace(drawn, 100'000);
      given_up += told.find("cancelled") != std::string::npos ? 1u : 0u;
    }
    EXPECT_GT(given_up, kSanitized ? 5u : 50u) << late.name;
  }
}

TEST(Explore, ACaseDependsOnItsSeedAndWhatIsHeldFixed) {
  EXPECT_EQ(Describe(CaseOf(7, {})), Describe(CaseOf(7, {})));
  EXPECT_NE(Describe(CaseOf(7, {})), Describe(CaseOf(8, {})));
  ExploreSpace space;
  space.cpus = 3;
  space.strategy = sequence::StrategyId::kTree;
  space.faults = false;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const ExploreCase drawn = CaseOf(seed, space);
    EXPECT_EQ(drawn.config.cpus, 3u);
    EXPECT_EQ(drawn.config.strategy.id, sequence::StrategyId::kTree);
    EXPECT_EQ(drawn.chaos.lost_sipi, sim::Rate::kOff);
    EXPECT_FALSE(drawn.doomed_cpu.has_value());
  }
}

}  // namespace
}  // namespace sipi
