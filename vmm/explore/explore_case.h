// One schedule to explore: everything about it follows from a seed. "Swarm testing": each seed
// leaves most kinds of trouble out and has others in plenty (Groce et al., ISSTA 2012).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "guest/platform/sim/simulator.h"
#include "vmm/load/params.h"
#include "vmm/machine/run_config.h"

namespace sipi {

// What the guest is explored at.
enum class ExploreScenario : uint8_t {
  kSmpboot,  // bring-up
  kRcu,      // readers, updaters and hotplug once all CPUs are up
};

// What a campaign holds fixed; what is not given is drawn for each seed.
struct ExploreSpace {
  ExploreScenario scenario = ExploreScenario::kSmpboot;
  uint32_t cpus = 0;  // 0: 2 to 5, now and then 8
  std::optional<sequence::StrategyId> strategy;
  bool faults = true;
  std::optional<bool> retry;  // CPUs that failed are brought up once more
  uint32_t canary = 0;        // in builds that have them
};

struct ExploreCase {
  uint64_t seed = 0;
  RunConfig config;
  sim::Chaos chaos;
  std::optional<uint32_t> doomed_cpu;  // its bring-up is made to fail
  bool firmware_lies = false;          // ... by a CPUID that shows another CPU's APIC ID
  std::vector<uint64_t> held_ns;       // by CPU: it takes no INIT or SIPI before
  // A handshake's bound is so short that the schedule alone makes any AP late, at any stage.
  bool short_bound = false;
  std::vector<uint16_t> choices;  // with Schedule::kChosen
};

// The kinds of injected trouble, by the names that Describe has for them.
struct RateName {
  const char* name;
  sim::Rate sim::Chaos::*member;
};
std::span<const RateName> RateNames();

ExploreCase CaseOf(uint64_t seed, const ExploreSpace& space);

// The simulator's options for it.
sim::Options OptionsOf(const ExploreCase& explored, const ArenaLayout& arena);

// "seed 7: 3 CPUs, kick+reuse, random schedule, store buffer, lost-sipi rare": for people.
std::string Describe(const ExploreCase& explored);

}  // namespace sipi
