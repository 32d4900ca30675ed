// Cases A4, A6, A9 and A10 on simulated CPUs, in both APIC modes: which message reaches whom.
// fabric_test.cc has the orders of INIT and SIPI.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

#include "apic/regs/apic_base.h"
#include "apic/regs/destination.h"
#include "tests/sim/program_machine.h"

namespace sipi::sim {
namespace {

using apic::DeliveryMode;
using apic::Icr;
using apic::Reg;
using apic::Shorthand;
using Cpus = std::set<uint32_t>;

constexpr uint8_t kVector = 0x55;

struct State {
  uint32_t starts = 0;
  uint32_t ready = 0;
  uint32_t hits[64] = {};
  uint32_t dfr = 0;  // xAPIC mode: what each CPU writes; 0: leaves DFR and LDR alone
  uint32_t ldr[64] = {};
  bool init_after_nmi = false;
  abi::ResultPage result = {};  // what an exception says
  void (*boot)(Cpu& cpu, State& state) = nullptr;
  void (*ap)(Cpu& cpu, State& state) = nullptr;  // before it is ready
};
using ApicMachine = ProgramMachine<State>;

State& StateOf(Cpu& cpu) { return ApicMachine::Of(cpu.machine); }

void SetUp(Cpu& cpu) {
  const State& state = StateOf(cpu);
  EnableApic();
  if (state.dfr == 0) return;
  platform::ApicWrite(Reg::kDfr, state.dfr);
  platform::ApicWrite(Reg::kLdr, state.ldr[cpu.number] << 24);
}

constexpr Program kProgram = {[](Cpu& cpu) {
                                SetUp(cpu);
                                StateOf(cpu).boot(cpu, StateOf(cpu));
                                EndRun(cpu);
                              },
                              [](Cpu& cpu, Vector) {
                                State& state = StateOf(cpu);
                                Increment(state.starts);
                                SetUp(cpu);
                                if (state.ap != nullptr) state.ap(cpu, state);
                                Increment(state.ready);
                                for (;;) platform::HaltEnabled();
                              },
                              [](Cpu& cpu, Vector vector) {
                                EXPECT_EQ(vector.value, kVector);
                                StateOf(cpu).hits[cpu.number]++;
                                platform::ApicWrite(Reg::kEoi, 0);
                              }};

void StartAll(Cpu& cpu, State& state) {
  SendIcr(DeliveryMode::kInit, 0, 0, Shorthand::kAllExcludingSelf);
  SendIcr(DeliveryMode::kStartUp, 8, 0, Shorthand::kAllExcludingSelf);
  ASSERT_TRUE(WaitForValue(state.ready, cpu.machine.size() - 1, 100'000));
}

// Who is interrupted by it, the sender too; no CPU more than once.
Cpus Reached(Cpu& cpu, State& state, const Icr& icr) {
  for (uint32_t& hits : state.hits) hits = 0;
  platform::ApicWriteIcr(icr.Low(), icr.dest);
  platform::DelayUs(50);
  platform::IrqEnable();
  platform::IrqDisable();
  Cpus cpus;
  for (uint32_t each = 0; each < cpu.machine.size(); ++each) {
    EXPECT_LE(state.hits[each], 1u) << each;
    if (state.hits[each] != 0) cpus.insert(each);
  }
  return cpus;
}

Icr Physical(uint32_t dest, Shorthand shorthand = Shorthand::kNone) {
  return {Vector(kVector), DeliveryMode::kFixed, shorthand, false, true, false, dest};
}
Icr Logical(uint32_t dest) {
  return {Vector(kVector), DeliveryMode::kFixed, Shorthand::kNone, true, true, false, dest};
}

End RunTest(ApicMachine& machine, void (*boot)(Cpu&, State&), void (*ap)(Cpu&, State&) = nullptr) {
  machine.state().boot = boot;
  machine.state().ap = ap;
  return machine.Run();
}

class ApicCases : public testing::TestWithParam<abi::ApicMode> {};
INSTANTIATE_TEST_SUITE_P(Modes, ApicCases,
                         testing::Values(abi::ApicMode::kXApic, abi::ApicMode::kX2Apic),
                         [](const auto& instance) {
                           return instance.param == abi::ApicMode::kXApic ? "XApic" : "X2Apic";
                         });

TEST_P(ApicCases, A4OnlyAnInitWithLevelTriggerAndLevel0DoesNothing) {
  ApicMachine machine(OptionsFor(2), kProgram, GetParam());
  RunTest(machine, [](Cpu& cpu, State& state) {
    StartAll(cpu, state);
    const uint64_t& inits = cpu.machine.stats().inits_taken;
    for (const bool level_trigger : {false, true}) {
      for (const bool level : {false, true}) {
        const auto send = [&](DeliveryMode mode, uint8_t vector) {
          const Icr icr{Vector(vector), mode, Shorthand::kNone, false, level, level_trigger, 1};
          platform::ApicWriteIcr(icr.Low(), icr.dest);
          platform::DelayUs(20);
        };
        const std::string what =
            std::string(level_trigger ? "level" : "edge") + ", " + (level ? "assert" : "de-assert");
        const uint64_t inits_before = inits;
        send(DeliveryMode::kInit, 0);
        EXPECT_EQ(inits - inits_before, level_trigger && !level ? 0u : 1u) << what;
        SendInit(1);
        platform::DelayUs(20);
        const uint32_t starts_before = state.starts;
        send(DeliveryMode::kStartUp, 8);
        EXPECT_EQ(state.starts - starts_before, 1u) << what;
        const uint32_t hits_before = state.hits[1];
        send(DeliveryMode::kFixed, kVector);
        EXPECT_EQ(state.hits[1] - hits_before, 1u) << what;
      }
    }
  });
}

TEST_P(ApicCases, A6AnInitFromAnApRestartsTheBootCpuAtTheResetVector) {
  ApicMachine machine(OptionsFor(3), kProgram, GetParam());
  const End end = RunTest(
      machine,
      [](Cpu& cpu, State& state) {
        StartAll(cpu, state);
        platform::DelayUs(100);
        ADD_FAILURE() << "the boot CPU went on after an INIT";
      },
      [](Cpu& cpu, State&) {
        if (cpu.number == 2) SendInit(0);
      });
  EXPECT_EQ(end.kind, EndKind::kFault);
  EXPECT_EQ(end.cpu, CpuNumber(0));
  EXPECT_NE(end.text.find("F000:FFF0"), std::string::npos) << end.text;
}

TEST_P(ApicCases, A9ShorthandsIgnoreTheDestinationAndBroadcastsDependOnTheMode) {
  ApicMachine machine(OptionsFor(5), kProgram, GetParam());
  RunTest(machine, [](Cpu& cpu, State& state) {
    StartAll(cpu, state);
    const Cpus all = {0, 1, 2, 3, 4};
    const bool x2apic = cpu.apic.mode() == apic::ApicMode::kX2Apic;
    const uint32_t rubbish = x2apic ? 0xdeadbeef : 0xa5;
    EXPECT_EQ(Reached(cpu, state, Physical(rubbish, Shorthand::kSelf)), Cpus{0});
    EXPECT_EQ(Reached(cpu, state, Physical(rubbish, Shorthand::kAllIncludingSelf)), all);
    EXPECT_EQ(Reached(cpu, state, Physical(rubbish, Shorthand::kAllExcludingSelf)),
              (Cpus{1, 2, 3, 4}));
    EXPECT_EQ(Reached(cpu, state, Physical(3)), Cpus{3});
    EXPECT_EQ(Reached(cpu, state, Physical(0)), Cpus{0});
    EXPECT_EQ(Reached(cpu, state, Physical(77)), Cpus{});
    EXPECT_EQ(Reached(cpu, state, Physical(apic::kXApicBroadcast)), x2apic ? Cpus{} : all);
    if (x2apic) {
      EXPECT_EQ(Reached(cpu, state, Physical(0xffffffff)), all);
    }
  });
}

TEST(ApicCasesX2, A10LdrFollowsFromTheIdAndADestinationHitsExactlyItsCluster) {
  ApicMachine machine(OptionsFor(48), kProgram);
  RunTest(
      machine,
      [](Cpu& cpu, State& state) {
        StartAll(cpu, state);
        EXPECT_EQ(Reached(cpu, state, Logical(0x00028001)), (Cpus{32, 47}));
        EXPECT_EQ(Reached(cpu, state, Logical(0x00010003)), (Cpus{16, 17}));
        EXPECT_EQ(Reached(cpu, state, Logical(0x0003ffff)), Cpus{}) << "no such cluster";
      },
      [](Cpu& cpu, State&) {
        EXPECT_EQ(platform::ApicRead(Reg::kLdr), cpu.number >> 4 << 16 | 1u << (cpu.number & 15));
      });
}

TEST(ApicCasesX2, A10WhatX2ApicModeDoesNotHaveFaults) {
  const auto ends_in = [](void (*access)(Cpu&, State&)) {
    ApicMachine machine(OptionsFor(1), kProgram);
    machine.machine().kernel().result = &machine.state().result;
    RunTest(machine, access);
    EXPECT_EQ(machine.state().result.status, static_cast<uint32_t>(abi::GuestStatus::kFault));
    EXPECT_EQ(machine.state().result.fault_vector, 13u);
  };
  ends_in([](Cpu&, State&) { platform::ApicWrite(Reg::kLdr, 1); });
  ends_in([](Cpu&, State&) { (void)platform::ApicRead(Reg::kDfr); });
  ends_in([](Cpu&, State&) { platform::ApicWrite(Reg::kDfr, 0xffffffff); });
}

// Eight CPUs in xAPIC mode with these logical IDs.
void RunWithLogicalIds(uint32_t dfr, const std::array<uint32_t, 8>& ldr,
                       void (*boot)(Cpu&, State&)) {
  ApicMachine machine(OptionsFor(8), kProgram, abi::ApicMode::kXApic);
  machine.state().dfr = dfr;
  std::ranges::copy(ldr, machine.state().ldr);
  RunTest(machine, boot);
}

TEST(ApicCasesX, A10TheFlatModelMatchesBits) {
  constexpr std::array<uint32_t, 8> kIds = {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80};
  RunWithLogicalIds(apic::kDfrFlat, kIds, [](Cpu& cpu, State& state) {
    StartAll(cpu, state);
    EXPECT_EQ(Reached(cpu, state, Logical(0x05)), (Cpus{0, 2}));
    EXPECT_EQ(Reached(cpu, state, Logical(0x80)), Cpus{7});
    EXPECT_EQ(Reached(cpu, state, Logical(0x00)), Cpus{});
    EXPECT_EQ(Reached(cpu, state, Logical(0xff)), (Cpus{0, 1, 2, 3, 4, 5, 6, 7}));
  });
}

TEST(ApicCasesX, A10TheClusterModelMatchesClusterAndBits) {
  constexpr std::array<uint32_t, 8> kIds = {0x01, 0x02, 0x04, 0x08, 0x11, 0x12, 0x14, 0x18};
  RunWithLogicalIds(apic::kDfrCluster, kIds, [](Cpu& cpu, State& state) {
    StartAll(cpu, state);
    EXPECT_EQ(Reached(cpu, state, Logical(0x15)), (Cpus{4, 6}));
    EXPECT_EQ(Reached(cpu, state, Logical(0x08)), Cpus{3});
    EXPECT_EQ(Reached(cpu, state, Logical(0x25)), Cpus{}) << "no such cluster";
    EXPECT_EQ(Reached(cpu, state, Logical(0xff)), (Cpus{0, 1, 2, 3, 4, 5, 6, 7}));
  });
}

// SDM vol 3C, 27.7.2: an NMI waits for the SIPI with the CPU, and goes with an INIT (table 10-1).
TEST_P(ApicCases, AnNmiToAWaitingCpuIsTakenOnceItStartsUnlessAnInitComesFirst) {
  for (const bool init : {false, true}) {
    SCOPED_TRACE(init);
    ApicMachine machine(OptionsFor(2), kProgram, GetParam());
    machine.machine().kernel().result = &machine.state().result;
    machine.state().init_after_nmi = init;
    RunTest(machine, [](Cpu&, State& state) {
      SendIcr(DeliveryMode::kNmi, 0, 1);
      platform::DelayUs(100);
      EXPECT_EQ(state.result.fault_vector, 0u) << "before the SIPI";
      if (state.init_after_nmi) SendInit(1);
      SendIcr(DeliveryMode::kStartUp, 8, 1);
      EXPECT_EQ(WaitForValue(state.ready, 1, 100'000), state.init_after_nmi);
    });
    EXPECT_EQ(machine.state().result.fault_vector, init ? 0u : 2u);
    EXPECT_EQ(machine.state().starts, init ? 1u : 0u);
  }
}

TEST(ApicCasesX2, A10ACpuStillInXApicModeHasTheLogicalIdThatItWrote) {
  ApicMachine machine(OptionsFor(4), kProgram);
  RunTest(
      machine,
      [](Cpu& cpu, State& state) {
        StartAll(cpu, state);
        EXPECT_EQ(Reached(cpu, state, Physical(3)), Cpus{3});
        EXPECT_EQ(Reached(cpu, state, Physical(0, Shorthand::kAllExcludingSelf)), (Cpus{1, 2, 3}));
        EXPECT_EQ(Reached(cpu, state, Logical(0x00000006)), (Cpus{1, 2}));
        EXPECT_EQ(Reached(cpu, state, Logical(0x00000040)), Cpus{3});
        EXPECT_EQ(Reached(cpu, state, Logical(0x00020040)), Cpus{}) << "cluster 2 has no CPU";
      },
      [](Cpu& cpu, State&) {
        if (cpu.number != 3) return;
        // From x2APIC mode the way to xAPIC mode leads by way of off.
        cpu.machine.WriteApicBase(cpu, apic::kApicBaseGpa);
        cpu.machine.WriteApicBase(cpu, apic::kApicBaseGpa | apic::kApicBaseEnable);
        EnableApic();
        platform::ApicWrite(Reg::kLdr, 0x40u << 24);
      });
}

}  // namespace
}  // namespace sipi::sim
