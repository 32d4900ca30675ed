// Properties checked over many inputs: exhaustively, or at random with fixed seeds.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "apic/model/init_sipi.h"
#include "apic/model/router.h"
#include "tests/apic/apic_builders.h"

namespace sipi::apic {
namespace {

// --- The mailbox against a CPU that sees each message at once.

struct InstantCpu {
  bool bsp;
  bool waiting = !bsp;
  bool was_reset = false;  // since the last look
  int start = -1;          // vector at which it runs since the last look; -1 = did not start

  void Init() {
    waiting = !bsp;
    was_reset = true;
    start = -1;
  }
  void Sipi(int vector) {
    if (!waiting) return;
    waiting = false;
    start = vector;
  }
  // What a CPU that looks only now has to do to end up in the same state.
  StartupAction Look() {
    using Kind = StartupAction::Kind;
    StartupAction action;
    if (start >= 0) {
      action = {was_reset ? Kind::kInitThenStart : Kind::kStart,
                Vector(static_cast<uint8_t>(start))};
    } else if (was_reset) {
      action.kind = Kind::kInit;
    }
    was_reset = false;
    start = -1;
    return action;
  }
};

TEST(MailboxProperty, EveryHistoryOfEightStepsEndsAsOnAnInstantCpu) {
  constexpr int kSteps = 8;
  for (int history = 0; history < 1 << (2 * kSteps); ++history) {
    for (const bool bsp : {false, true}) {
      StartupMailbox mailbox(bsp);
      InstantCpu cpu{.bsp = bsp};
      for (int step = 0; step < kSteps; ++step) {
        switch (history >> (2 * step) & 3) {
          case 0:
            mailbox.PostInit();
            cpu.Init();
            break;
          case 1:
            mailbox.PostSipi(Vector(8));
            cpu.Sipi(8);
            break;
          case 2:
            mailbox.PostSipi(Vector(9));
            cpu.Sipi(9);
            break;
          default:
            ASSERT_EQ(mailbox.Take(), cpu.Look()) << "history " << history << " step " << step;
            ASSERT_EQ(mailbox.WaitsForSipi(), cpu.waiting);
        }
      }
      ASSERT_EQ(mailbox.Take(), cpu.Look()) << "history " << history;
    }
  }
}

// --- Routing against one plain test per CPU.

bool Reaches(const RoutingTable& table, const Icr& icr, uint32_t sender, uint32_t target) {
  const RoutingState from = table.State(CpuNumber(sender));
  const RoutingState to = table.State(CpuNumber(target));
  const bool fixed = icr.mode == DeliveryMode::kFixed;
  if (from.mode == ApicMode::kDisabled || to.mode == ApicMode::kDisabled) return false;
  if (fixed && !to.software_enabled) return false;
  if (!IsDeliverable(icr)) return false;
  switch (icr.shorthand) {
    case Shorthand::kSelf:
      return sender == target;
    case Shorthand::kAllIncludingSelf:
      return true;
    case Shorthand::kAllExcludingSelf:
      return sender != target;
    case Shorthand::kNone:
      break;
  }
  if (icr.dest == (from.mode == ApicMode::kX2Apic ? 0xffffffff : 0xff)) return true;
  return icr.logical ? MatchesLogical(to, icr.dest) : table.id(CpuNumber(target)).value == icr.dest;
}

TEST(RouterProperty, ForEachTargetAgreesWithATestPerCpu) {
  std::mt19937 random(20230515);
  for (int round = 0; round < 300; ++round) {
    std::vector<ApicId> ids;
    uint32_t next_id = 0;
    for (uint32_t i = 0; i < 1 + random() % 60; ++i) {
      ids.push_back(ApicId(next_id));
      next_id += static_cast<uint32_t>(1 + random() % (round % 3 == 0 ? 1 : 40));
    }
    std::shuffle(ids.begin(), ids.end(), random);
    RoutingTable table(ids);
    for (uint32_t publish = 0; publish < 2 * table.size(); ++publish) {
      const uint32_t cpu = static_cast<uint32_t>(random() % table.size());
      RoutingState state;
      state.mode = static_cast<ApicMode>(random() % 3);
      state.software_enabled = random() % 4 != 0;
      state.dfr_model = random() % 2 ? 0xf : 0;
      const uint32_t ldr = static_cast<uint32_t>(random()) & 0xff000000;
      state.ldr = state.mode == ApicMode::kX2Apic ? X2ApicLogicalId(ids[cpu]) : ldr;
      table.Publish(CpuNumber(cpu), state);
    }
    for (int message = 0; message < 300; ++message) {
      const uint32_t sender = static_cast<uint32_t>(random() % table.size());
      const bool wide = table.State(CpuNumber(sender)).mode == ApicMode::kX2Apic;
      Icr icr = Icr::FromLow(static_cast<uint32_t>(random()) & 0xccfff, 0);
      if (icr.mode == DeliveryMode::kLowestPriority) icr.mode = DeliveryMode::kFixed;
      switch (random() % 4) {
        case 0:
          icr.dest = wide ? 0xffffffff : 0xff;
          break;
        case 1:
          icr.dest = static_cast<uint32_t>(random()) & 0xff;
          break;
        default:
          icr.dest = wide ? static_cast<uint32_t>(random()) & 0x3ffff : ids[sender].value & 0xff;
      }
      std::vector<uint32_t> expected;
      for (uint32_t cpu = 0; cpu < table.size(); ++cpu) {
        if (Reaches(table, icr, sender, cpu)) expected.push_back(cpu);
      }
      std::vector<uint32_t> actual;
      table.ForEachTarget(icr, CpuNumber(sender),
                          [&](CpuNumber cpu) { actual.push_back(cpu.value); });
      std::sort(actual.begin(), actual.end());
      ASSERT_EQ(actual, expected) << "round " << round << " ICR " << std::hex << icr.X2Apic();
    }
  }
}

TEST(RouterProperty, LowestPriorityPicksOneOfTheFixedTargets) {
  std::mt19937 random(65);
  std::vector<ApicId> ids;
  for (uint32_t i = 0; i < 40; ++i) ids.push_back(ApicId(i * 3));
  RoutingTable table(ids);
  for (int round = 0; round < 2000; ++round) {
    const uint32_t cpu = static_cast<uint32_t>(random() % 40);
    RoutingState state;
    state.mode = random() % 8 == 0 ? ApicMode::kDisabled : ApicMode::kX2Apic;
    state.software_enabled = true;
    state.priority = static_cast<uint8_t>(random() & 0x30);
    state.ldr = X2ApicLogicalId(ids[cpu]);
    table.Publish(CpuNumber(cpu), state);
    Icr icr = Icr::FromX2Apic((random() & 0x7) << 48 | (random() & 0xffff) << 32 | kIcrLogical);
    icr.vector = Vector(static_cast<uint8_t>(0x20 + random() % 0xd0));
    const CpuNumber sender(static_cast<uint32_t>(random() % 40));
    std::vector<uint32_t> fixed;
    table.ForEachTarget(icr, sender, [&](CpuNumber c) { fixed.push_back(c.value); });
    icr.mode = DeliveryMode::kLowestPriority;
    std::vector<uint32_t> lowest;
    table.ForEachTarget(icr, sender, [&](CpuNumber c) { lowest.push_back(c.value); });
    ASSERT_EQ(lowest.size(), fixed.empty() ? 0u : 1u);
    if (fixed.empty()) continue;
    ASSERT_NE(std::find(fixed.begin(), fixed.end(), lowest[0]), fixed.end());
    for (const uint32_t other : fixed) {
      ASSERT_LE(table.State(CpuNumber(lowest[0])).priority, table.State(CpuNumber(other)).priority);
    }
  }
}

// --- Random software against one APIC.

void ExpectInvariants(const LocalApic& apic) {
  ASSERT_FALSE(apic.mode() == ApicMode::kXApic && (apic.ReadApicBase() & kApicBaseX2Apic) != 0);
  for (uint8_t vector = 0; vector < 16; ++vector) {
    ASSERT_FALSE(apic.Pending(Vector(vector)));
    ASSERT_FALSE(apic.InService(Vector(vector)));
  }
  for (size_t i = 0; i < kLvtEntryCount; ++i) {
    const LvtEntry entry = static_cast<LvtEntry>(i);
    const uint32_t lvt = apic.lvt(entry);
    ASSERT_EQ(lvt & ~(LvtWritable(entry) | kLvtRemoteIrr), 0u);
    ASSERT_TRUE(apic.software_enabled() || (lvt & kLvtMasked) != 0);
  }
  ASSERT_GE(apic.Ppr() & 0xf0, apic.tpr() & 0xf0);
  if (const std::optional<Vector> next = apic.HighestDeliverable()) {
    ASSERT_TRUE(apic.Pending(*next));
    ASSERT_GT(next->value & 0xf0, apic.Ppr() & 0xf0);
  }
}

class RandomSoftware {
 public:
  explicit RandomSoftware(uint32_t seed) : random_(seed) {}

  void Step(LocalApic& apic) {
    now_.ns += random_() % 500;
    now_.tsc += random_() % 1500;
    switch (random_() % 10) {
      case 0:
        (void)apic.WriteApicBase(kApicBaseGpa | (random_() & 0xd00));
        break;
      case 1:
        apic.Accept(RandomVector(), random_() % 2 != 0);
        break;
      case 2:
        if (const auto next = apic.HighestDeliverable()) apic.Acknowledge(*next);
        break;
      case 3:
        (void)apic.RaiseLocal(static_cast<LvtEntry>(random_() % kLvtEntryCount));
        break;
      case 4:
        apic.Advance(now_);
        break;
      case 5:
        (void)apic.WriteTscDeadline(random_() % 3 == 0 ? 0 : now_.tsc + random_() % 1000, now_);
        break;
      case 6:
        if (random_() % 50 == 0) apic.Init();
        apic.SetCr8(random_() & 0xf);
        break;
      default:
        WriteSomeRegister(apic);
    }
  }

  Time now() const { return now_; }

 private:
  Vector RandomVector() { return Vector(static_cast<uint8_t>(random_())); }

  void WriteSomeRegister(LocalApic& apic) {
    const uint32_t index = static_cast<uint32_t>(random_() % 0x41);
    uint32_t value = static_cast<uint32_t>(random_()) >> (random_() % 32);
    if (index == 0x0f) value |= random_() % 8 == 0 ? 0 : kSvrEnable;
    if (apic.mode() == ApicMode::kX2Apic) {
      const RegisterPage before = apic.ToPage(now_);
      if (apic.WriteMsr(0x800 + index, value, now_).fault) {
        ASSERT_EQ(apic.ToPage(now_), before) << "a faulting write to index " << index;
      }
      (void)apic.ReadMsr(0x800 + index, now_);
    } else {
      ASSERT_FALSE(apic.WriteMmio(index * 16, value, now_).fault);
      (void)apic.ReadMmio(index * 16, now_);
    }
  }

  std::mt19937 random_;
  Time now_{.ns = 1, .tsc = 1};
};

TEST(LocalApicProperty, RandomSoftwareNeverBreaksTheInvariants) {
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    RandomSoftware software(seed);
    LocalApic apic(ApicId(seed * 7), seed % 2 != 0);
    for (int step = 0; step < 1000; ++step) {
      ASSERT_NO_FATAL_FAILURE(software.Step(apic)) << "seed " << seed << " step " << step;
      ASSERT_NO_FATAL_FAILURE(ExpectInvariants(apic)) << "seed " << seed << " step " << step;
    }
  }
}

TEST(LocalApicProperty, EveryReachablePageSurvivesSavingAndRestoring) {
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    RandomSoftware software(seed);
    LocalApic apic(ApicId(seed), false);
    for (int step = 0; step < 300; ++step) {
      ASSERT_NO_FATAL_FAILURE(software.Step(apic));
      const RegisterPage page = apic.ToPage(software.now());
      LocalApic copy(ApicId(seed), false);
      copy.Reset(false, apic.mode());
      copy.FromPage(page, software.now());
      ASSERT_EQ(copy.ToPage(software.now()), page) << "seed " << seed << " step " << step;
    }
  }
}

TEST(LocalApicProperty, TimerNeverFiresEarlyAndAlwaysAtItsDeadline) {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    LocalApic apic(ApicId(0), true, {.bus_hz = 1 + random() % 2'000'000'000});
    (void)apic.WriteMmio(0x0f0, 0x1ff, Time{});
    (void)apic.WriteMmio(0x320, random() % 2 ? 0x200ef : 0x000ef, Time{});
    (void)apic.WriteMmio(0x3e0, static_cast<uint32_t>(random()), Time{});
    const Time start = AtNs(random() % 1'000'000);
    (void)apic.WriteMmio(0x380, 1 + static_cast<uint32_t>(random()) % 100'000, start);
    const std::optional<uint64_t> deadline = apic.NextDeadlineNs(start);
    ASSERT_TRUE(deadline && *deadline > start.ns) << seed;
    ASSERT_FALSE(apic.Advance(AtNs(*deadline - 1))) << seed;
    ASSERT_TRUE(apic.Advance(AtNs(*deadline))) << seed;
  }
}

}  // namespace
}  // namespace sipi::apic
