// INIT, SIPI and IPIs between simulated CPUs: cases A3 to A6, A9 and A10; more of A4, A6, A9 and
// A10 in apic_cases_test.cc.
#include <gtest/gtest.h>

#include <set>

#include "apic/regs/destination.h"
#include "tests/sim/program_machine.h"

namespace sipi::sim {
namespace {

constexpr uint8_t kVector = 0x55;

struct State {
  uint32_t starts = 0;
  uint32_t ready = 0;
  uint32_t last_vector = 0;
  uint32_t hits[256] = {};  // interrupts, by CPU
  void (*boot_test)(Cpu& cpu, State& state) = nullptr;
};
using FabricMachine = ProgramMachine<State>;

State& StateOf(Cpu& cpu) { return FabricMachine::Of(cpu.machine); }

void Boot(Cpu& cpu) {
  EnableApic();
  StateOf(cpu).boot_test(cpu, StateOf(cpu));
  EndRun(cpu);
}

void ApHalts(Cpu& cpu, Vector startup) {
  State& state = StateOf(cpu);
  state.last_vector = startup.value;
  Increment(state.starts);
  EnableApic();
  Increment(state.ready);
  for (;;) platform::HaltEnabled();
}

void CountHit(Cpu& cpu, Vector vector) {
  EXPECT_EQ(vector.value, kVector);
  StateOf(cpu).hits[cpu.number]++;
  platform::ApicWrite(apic::Reg::kEoi, 0);
}

constexpr Program kProgram = {Boot, ApHalts, CountHit};

sim::End RunTest(FabricMachine& machine, void (*test)(Cpu&, State&)) {
  machine.state().boot_test = test;
  return machine.Run();
}

void StartAll(Cpu& cpu, State& state) {
  SendIcr(apic::DeliveryMode::kInit, 0, 0x123, apic::Shorthand::kAllExcludingSelf);
  SendIcr(apic::DeliveryMode::kStartUp, 8, 0x123, apic::Shorthand::kAllExcludingSelf);
  ASSERT_TRUE(WaitForValue(state.ready, cpu.machine.size() - 1, 100'000));
}

TEST(Fabric, A3ASipiCountsOnlyInWaitForSipi) {
  FabricMachine machine(OptionsFor(2), kProgram);
  const auto end = RunTest(machine, [](Cpu&, State& state) {
    SendInit(1);
    SendSipi(8, 1);
    EXPECT_TRUE(WaitForValue(state.ready, 1, 1000));
    SendSipi(9, 1);
    SendSipi(8, 1);
    platform::DelayUs(20);
    EXPECT_EQ(state.starts, 1u);
    EXPECT_EQ(state.last_vector, 8u);
    SendInit(1);
    SendInit(1);
    SendSipi(8, 1);
    platform::DelayUs(20);
    EXPECT_EQ(state.starts, 2u);
  });
  EXPECT_EQ(end.kind, EndKind::kGuestExit);
  EXPECT_EQ(machine.machine().stats().sipis_ignored, 2u);
}

TEST(Fabric, A4LinuxsOrderWithTheDeassertGivesOneInit) {
  FabricMachine machine(OptionsFor(2), kProgram);
  RunTest(machine, [](Cpu&, State& state) {
    SendInit(1);
    const apic::Icr deassert{
        Vector(0), apic::DeliveryMode::kInit, apic::Shorthand::kNone, false, false, true, 1};
    platform::ApicWriteIcr(deassert.Low(), 1);
    SendSipi(8, 1);
    SendSipi(8, 1);
    platform::DelayUs(20);
    EXPECT_EQ(state.starts, 1u);
  });
  EXPECT_EQ(machine.machine().stats().inits_taken, 1u);
}

TEST(Fabric, A5TheApStartsAtTheVectorsPage) {
  for (const uint32_t vector : {0x00u, 0x01u, 0x9fu, 0xa0u, 0xbfu, 0xffu}) {
    FabricMachine machine(OptionsFor(2), kProgram);
    machine.state().last_vector = 0x1000;
    machine.state().hits[255] = vector;
    RunTest(machine, [](Cpu&, State& state) {
      SendInit(1);
      SendSipi(static_cast<uint8_t>(state.hits[255]), 1);
      EXPECT_TRUE(WaitForValue(state.ready, 1, 1000));
    });
    EXPECT_EQ(machine.state().last_vector, vector);
  }
}

TEST(Fabric, A6AnInitReachesTheBootCpuAndIsNotLegalWithTheShorthandsThatMeanSelf) {
  FabricMachine machine(OptionsFor(3), kProgram);
  const auto end = RunTest(machine, [](Cpu& cpu, State& state) {
    StartAll(cpu, state);
    SendIcr(apic::DeliveryMode::kInit, 0, 0, apic::Shorthand::kSelf);
    SendIcr(apic::DeliveryMode::kInit, 0, 0, apic::Shorthand::kAllIncludingSelf);
    platform::DelayUs(20);
    EXPECT_EQ(cpu.machine.stats().inits_taken, 2u) << "those of the start";
    SendInit(0);
    platform::DelayUs(20);
    ADD_FAILURE() << "the boot CPU went on after an INIT";
  });
  EXPECT_EQ(end.kind, EndKind::kFault);
  EXPECT_NE(end.text.find("F000:FFF0"), std::string::npos) << end.text;
}

std::set<uint32_t> HitCpus(FabricMachine& machine) {
  std::set<uint32_t> cpus;
  for (uint32_t cpu = 0; cpu < machine.machine().size(); ++cpu) {
    if (machine.state().hits[cpu] != 0) cpus.insert(cpu);
  }
  return cpus;
}

TEST(Fabric, A9BroadcastsReachAllButTheSenderWhateverTheDestinationField) {
  FabricMachine machine(OptionsFor(64), kProgram);
  RunTest(machine, [](Cpu& cpu, State& state) {
    StartAll(cpu, state);
    SendIcr(apic::DeliveryMode::kFixed, kVector, 0x77777777, apic::Shorthand::kAllExcludingSelf);
    platform::DelayUs(50);
  });
  EXPECT_EQ(HitCpus(machine).size(), 63u);
  EXPECT_EQ(machine.state().hits[0], 0u);
  EXPECT_EQ(machine.machine().stats().startups_taken, 63u);
}

TEST(Fabric, A9PhysicalFfIsACpuInX2ApicModeAndEverybodyInXApicMode) {
  const auto send = [](Cpu& cpu, State& state) {
    StartAll(cpu, state);
    SendIcr(apic::DeliveryMode::kFixed, kVector, apic::kXApicBroadcast);
    platform::DelayUs(50);
    platform::IrqEnable();
    platform::IrqDisable();
  };
  FabricMachine x2apic(OptionsFor(4), kProgram);
  RunTest(x2apic, send);
  EXPECT_TRUE(HitCpus(x2apic).empty()) << "there is no CPU with ID 255";
  EXPECT_EQ(x2apic.machine().stats().undeliverable, 1u);
  FabricMachine xapic(OptionsFor(4), kProgram, abi::ApicMode::kXApic);
  RunTest(xapic, send);
  EXPECT_EQ(HitCpus(xapic), (std::set<uint32_t>{0, 1, 2, 3}));
}

TEST(Fabric, A10AnX2ApicLogicalDestinationHitsExactlyItsCluster) {
  FabricMachine machine(OptionsFor(48), kProgram);
  RunTest(machine, [](Cpu& cpu, State& state) {
    StartAll(cpu, state);
    const apic::Icr icr{
        Vector(kVector), apic::DeliveryMode::kFixed, apic::Shorthand::kNone, true, true, false,
        0x00028001};
    platform::ApicWriteIcr(icr.Low(), icr.dest);
    platform::DelayUs(50);
  });
  EXPECT_EQ(HitCpus(machine), (std::set<uint32_t>{32, 47}));
}

TEST(Fabric, AnInterruptWaitsUntilTheyAreEnabled) {
  FabricMachine machine(OptionsFor(2), kProgram);
  RunTest(machine, [](Cpu&, State& state) {
    SendIcr(apic::DeliveryMode::kFixed, kVector, 0);
    platform::DelayUs(50);
    EXPECT_EQ(state.hits[0], 0u);
    platform::IrqEnable();
    EXPECT_EQ(state.hits[0], 1u);
    platform::IrqDisable();
    // One that is pending already ends the halt that enables interrupts.
    SendIcr(apic::DeliveryMode::kFixed, kVector, 0);
    platform::DelayUs(50);
    platform::HaltEnabled();
    EXPECT_EQ(state.hits[0], 2u);
    EXPECT_FALSE(platform::IrqsEnabled());
  });
}

}  // namespace
}  // namespace sipi::sim
