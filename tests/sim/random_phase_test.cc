// Cases A1 and A2: INIT, SIPI, SIPI against a CPU that is not there yet, and at every phase of one
// that halts and is woken by its timer.
#include <gtest/gtest.h>

#include "tests/sim/program_machine.h"

namespace sipi::sim {
namespace {

constexpr uint8_t kPage = 0x08;

// --- A1

struct HeldState {
  uint32_t started = 0;
  uint64_t boot_ns = 0;
  uint64_t first_ns[8] = {};
  uint32_t starts[8] = {};
};
using HeldMachine = ProgramMachine<HeldState>;

void KickAllAtOnce(Cpu& cpu) {
  HeldState& state = HeldMachine::Of(cpu.machine);
  state.boot_ns = cpu.now_ns;
  for (uint32_t ap = 1; ap < 8; ++ap) {
    SendInit(ap);
    SendSipi(kPage, ap);
    SendSipi(kPage, ap);
  }
  EXPECT_TRUE(WaitForValue(state.started, 7, 1'000'000));
  EndRun(cpu);
}

void CountStart(Cpu& cpu, Vector startup) {
  HeldState& state = HeldMachine::Of(cpu.machine);
  EXPECT_EQ(startup.value, kPage);
  state.first_ns[cpu.number] = cpu.now_ns;
  state.starts[cpu.number]++;
  Increment(state.started);
}

TEST(RandomPhase, A1MessagesToCpusThatDoNotRunYetCountInOrder) {
  Random random(1, 0);
  for (uint64_t round = 0; round < 10'000; ++round) {
    Options options = OptionsFor(8, round);
    for (CpuPlace& place : options.cpus) {
      if (place.apic_id.value != 0) place.held_ns = random.Below(50'000'000);
    }
    HeldMachine machine(options, {KickAllAtOnce, CountStart, NoInterrupt});
    ASSERT_EQ(machine.Run().kind, EndKind::kGuestExit);
    for (uint32_t ap = 1; ap < 8; ++ap) {
      ASSERT_EQ(machine.state().starts[ap], 1u) << "round " << round << ", AP " << ap;
      ASSERT_GT(machine.state().first_ns[ap], machine.state().boot_ns);
      ASSERT_GE(machine.state().first_ns[ap] - 1'000'000'000, options.cpus[ap].held_ns);
    }
    ASSERT_EQ(machine.machine().stats().inits_taken, 7u);
    ASSERT_EQ(machine.machine().stats().startups_taken, 7u);
  }
}

// --- A2

constexpr uint32_t kRounds = 100'000;
constexpr uint8_t kTimer = 0x40;

struct PhaseState {
  uint32_t restarts = 0;
  uint32_t wrong_rounds = 0;
};
using PhaseMachine = ProgramMachine<PhaseState>;

void HaltOnATimer(Cpu& cpu, Vector) {
  Increment(PhaseMachine::Of(cpu.machine).restarts);
  EnableApic();
  platform::ApicWrite(apic::Reg::kLvtTimer, apic::kLvtTimerPeriodic | kTimer);
  platform::ApicWrite(apic::Reg::kTimerInitial, 2'500);  // 5 us: divide by 2, 1 GHz
  for (;;) platform::HaltEnabled();
}

void RestartAtRandomPhases(Cpu& cpu) {
  PhaseState& state = PhaseMachine::Of(cpu.machine);
  for (uint32_t round = 1; round <= kRounds; ++round) {
    cpu.machine.DelayUntil(cpu, cpu.now_ns + cpu.random.Below(20'000));
    SendInit(1);
    SendSipi(kPage, 1);
    SendSipi(kPage, 1);
    // The second SIPI must not restart a CPU that runs: look when it has arrived.
    platform::DelayUs(5);
    if (Shared(state.restarts).Load(std::memory_order_seq_cst) != round) state.wrong_rounds++;
  }
  EndRun(cpu);
}

TEST(RandomPhase, A2EachRoundRestartsAHaltingCpuExactlyOnce) {
  PhaseMachine machine(OptionsFor(2), {RestartAtRandomPhases, HaltOnATimer, JustEoi});
  ASSERT_EQ(machine.Run().kind, EndKind::kGuestExit);
  EXPECT_EQ(machine.state().wrong_rounds, 0u);
  EXPECT_EQ(machine.state().restarts, kRounds);
}

}  // namespace
}  // namespace sipi::sim
