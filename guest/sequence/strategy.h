// A bring-up strategy as data: which passes over which CPUs up to which goal. Freestanding: the
// guest's boot CPU and the host-driven sequencer of the VMM run the same strategies through
// driver.h.
//
// Sources for the orders: Linux kernel/cpu.c (bringup_nonboot_cpus, cpuhp_bringup_mask), the
// parallel series v1 to v6; `broadcast` is what firmware does (SDM vol 3A, 9.4.4), `tree` is ours.
#pragma once

#include <cstdint>

namespace sipi::sequence {

enum class Scope : uint8_t { kAll, kPrimaries, kSiblings };

// The state up to which a pass drives each CPU of its scope.
enum class Goal : uint8_t {
  kKicked,  // INIT and SIPIs sent (cpu:kick_ap)
  kAlive,   // has reported alive and was let go (x86/cpu:wait-init)
  kOnline,  // all the way up
};

// How a kKicked pass sends its INITs and SIPIs.
enum class Means : uint8_t { kEach, kBroadcast, kTree };

// Whether the control CPU takes each CPU to the goal before the next, or lets all APs run on their
// own.
enum class Pace : uint8_t { kOneByOne, kConcurrent };

struct Pass {
  Scope scope = Scope::kAll;
  Goal goal = Goal::kOnline;
  Means means = Means::kEach;
  Pace pace = Pace::kOneByOne;
};

inline constexpr uint32_t kMaxPasses = 4;

enum class StrategyId : uint8_t {
  kSerial,
  kKick,
  kKickWait,
  kPrimaryFirst,
  kFull,
  kBroadcast,
  kTree
};
inline constexpr uint32_t kStrategyCount = 7;

struct Strategy {
  StrategyId id = StrategyId::kSerial;
  uint8_t pass_count = 0;
  uint8_t reuse_calibration = 0;  // "+reuse"
  uint8_t overlap = 0;            // "+overlap": the boot CPU calibrates inside the first INIT wait
  Pass passes[kMaxPasses] = {};

  // True if APs of this strategy run their own STARTING and ONLINE sections without being let go
  // one by one.
  constexpr bool ApsRunOnTheirOwn() const {
    for (uint32_t i = 0; i < pass_count; ++i) {
      if (passes[i].pace == Pace::kConcurrent) return true;
    }
    return false;
  }
};

constexpr const char* BaseName(StrategyId id) {
  switch (id) {
    case StrategyId::kSerial:
      return "serial";
    case StrategyId::kKick:
      return "kick";
    case StrategyId::kKickWait:
      return "kick+wait";
    case StrategyId::kPrimaryFirst:
      return "primary-first";
    case StrategyId::kFull:
      return "full";
    case StrategyId::kBroadcast:
      return "broadcast";
    case StrategyId::kTree:
      return "tree";
  }
  return "?";
}

constexpr Strategy MakeStrategy(StrategyId id) {
  constexpr Pass kOnlineEach{Scope::kAll, Goal::kOnline, Means::kEach, Pace::kOneByOne};
  constexpr Pass kOnlineOwn{Scope::kAll, Goal::kOnline, Means::kEach, Pace::kConcurrent};
  constexpr Pass kKickEach{Scope::kAll, Goal::kKicked, Means::kEach, Pace::kOneByOne};
  constexpr Pass kWait{Scope::kAll, Goal::kAlive, Means::kEach, Pace::kOneByOne};
  Strategy s;
  s.id = id;
  const auto add = [&s](Pass pass) { s.passes[s.pass_count++] = pass; };
  switch (id) {
    case StrategyId::kSerial:
      add(kOnlineEach);
      break;
    case StrategyId::kKick:
      add(kKickEach);
      add(kOnlineEach);
      break;
    case StrategyId::kKickWait:
      add(kKickEach);
      add(kWait);
      add(kOnlineEach);
      break;
    case StrategyId::kPrimaryFirst:
      add({Scope::kPrimaries, Goal::kKicked, Means::kEach, Pace::kOneByOne});
      add({Scope::kPrimaries, Goal::kOnline, Means::kEach, Pace::kOneByOne});
      add({Scope::kSiblings, Goal::kKicked, Means::kEach, Pace::kOneByOne});
      add({Scope::kSiblings, Goal::kOnline, Means::kEach, Pace::kOneByOne});
      break;
    case StrategyId::kFull:
      add(kKickEach);
      add(kOnlineOwn);
      break;
    case StrategyId::kBroadcast:
      add({Scope::kAll, Goal::kKicked, Means::kBroadcast, Pace::kOneByOne});
      add(kOnlineOwn);
      break;
    case StrategyId::kTree:
      add({Scope::kAll, Goal::kKicked, Means::kTree, Pace::kOneByOne});
      add(kOnlineOwn);
      break;
  }
  return s;
}

}  // namespace sipi::sequence
