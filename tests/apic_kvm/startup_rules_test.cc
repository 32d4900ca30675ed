// INIT and Start-Up IPIs between vCPUs: cases A3 and A4 of the APIC's list.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

#include "tests/apic_kvm/program_fixture.h"

namespace sipi {
namespace {

// For all files of this program.
INSTANTIATE_TEST_SUITE_P(Irqchips, EachChip, testing::ValuesIn(kEachChip), IrqchipName);
INSTANTIATE_TEST_SUITE_P(Modes, EachMode, testing::ValuesIn(kEachMode), ChipAndModeName);

constexpr uint8_t kPing = 0x40;

// The interpreter itself works: reads, faults, interrupts.
TEST_P(EachChip, ReadsFaultsAndInterruptsComeBack) {
  MakeProgrammed(Cpus(1));
  Program& boot = Of(0);
  EndInterrupts(0);
  Enable(boot);
  const size_t svr = boot.ReadX2(Reg::kSvr);
  const size_t fault = boot.Wrmsr(0x831, 0);
  boot.WriteX2(Reg::kSelfIpi, kPing);
  boot.Halt();
  const size_t leaf = boot.Cpuid(0, 0);
  boot.Exit(7);
  ASSERT_TRUE(RunPrograms()) << end_.text << Doings();
  EXPECT_EQ(end_.code, 7u);
  EXPECT_EQ(Result(boot, svr).value(), 0x1ffu);
  EXPECT_EQ(Result(boot, svr).fault, 0u);
  EXPECT_EQ(Result(boot, fault).fault, 1u);
  EXPECT_EQ(Interrupts(0, kPing), 1u);
  EXPECT_GE(Result(boot, leaf).low, 0xbu);
}

Icr ToAp(DeliveryMode mode, uint8_t vector = 0) {
  Icr icr;
  icr.mode = mode;
  icr.dest = 1;
  icr.vector = Vector(vector);
  return icr;
}
Icr Init() { return ToAp(DeliveryMode::kInit); }
Icr StartUp(uint8_t vector = kInterpreterSipi) { return ToAp(DeliveryMode::kStartUp, vector); }

// Case A3. A SIPI counts only in wait-for-SIPI, and only the first.
TEST_P(EachMode, ASipiCountsOnlyWhileTheCpuWaitsForOne) {
  constexpr uint64_t kStrayCounterGpa = 0xa000;
  // At SIPI vector 9: LOCK INC DWORD PTR [A000H]; CLI; HLT.
  constexpr std::array<uint8_t, 8> kStray = {0xf0, 0x66, 0xff, 0x06, 0x00, 0xa0, 0xfa, 0xf4};
  MakeProgrammed(Cpus(2));
  ASSERT_TRUE(machine_->memory().Write(Gpa(0x9000), std::as_bytes(std::span(kStray))).ok());
  Serve(1);
  Program& boot = Of(0);
  BeReachable(boot);
  Enable(boot);
  Send(boot, Init());
  Send(boot, StartUp());
  boot.WaitFor(WordGpa(0), 1);
  Send(boot, StartUp(9));
  Send(boot, StartUp(8));
  Ping(boot, 1, kPing, 1);  // whoever answers has not been restarted since
  const size_t starts = boot.Read32(StartsGpa(1));
  Send(boot, Init());
  Send(boot, Init());
  Send(boot, StartUp());
  boot.WaitFor(WordGpa(0), 2);
  Ping(boot, 1, kPing, 2);
  boot.Exit();
  ASSERT_TRUE(RunPrograms()) << end_.text << Doings();
  EXPECT_EQ(Result(boot, starts).low, 1u);
  EXPECT_EQ(Starts(1), 2u);
  EXPECT_EQ(Word(kStrayCounterGpa), 0u);
}

struct TriggerAndLevel {
  bool level_triggered;
  bool assert_level;
};
constexpr TriggerAndLevel kCombinations[] = {
    {false, false}, {false, true}, {true, false}, {true, true}};

Icr With(Icr icr, const TriggerAndLevel& bits) {
  icr.level_triggered = bits.level_triggered;
  icr.assert_level = bits.assert_level;
  return icr;
}

// Case A4, INIT: only level trigger with level 0, the de-assert, does nothing.
TEST_P(EachMode, OnlyTheInitLevelDeassertDoesNothing) {
  MakeProgrammed(Cpus(2));
  Serve(1);
  Program& boot = Of(0);
  Enable(boot);
  StartOthers(boot);
  uint32_t starts = 1;
  uint32_t pings = 0;
  std::array<size_t, 4> seen = {};
  std::array<uint32_t, 4> expected = {};
  for (size_t i = 0; i < 4; ++i) {
    Send(boot, With(Init(), kCombinations[i]));
    Send(boot, StartUp());
    const bool deassert = kCombinations[i].level_triggered && !kCombinations[i].assert_level;
    if (!deassert) boot.WaitFor(WordGpa(0), ++starts);
    Ping(boot, 1, kPing, ++pings);
    seen[i] = boot.Read32(StartsGpa(1));
    expected[i] = starts;
  }
  boot.Exit();
  ASSERT_TRUE(RunPrograms()) << end_.text << Doings();
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(Result(boot, seen[i]).low, expected[i]) << i;
}

// Case A4, Start Up: trigger and level mean nothing.
TEST_P(EachMode, EachTriggerAndLevelStartsAWaitingCpu) {
  MakeProgrammed(Cpus(2));
  Serve(1);
  Program& boot = Of(0);
  BeReachable(boot);
  Enable(boot);
  uint32_t starts = 0;
  for (const TriggerAndLevel& bits : kCombinations) {
    Send(boot, Init());
    Send(boot, With(StartUp(), bits));
    boot.WaitFor(WordGpa(0), ++starts);
  }
  boot.Exit();
  ASSERT_TRUE(RunPrograms()) << end_.text << Doings();
  EXPECT_EQ(Starts(1), 4u);
}

// Case A4, Fixed: the same; IPIs are edge-triggered, whatever the ICR says (11.6.1).
TEST_P(EachMode, EachTriggerAndLevelOfAFixedIpiIsAnEdge) {
  MakeProgrammed(Cpus(2));
  Serve(1);
  Program& boot = Of(0);
  Enable(boot);
  StartOthers(boot);
  for (uint8_t i = 0; i < 4; ++i) {
    Send(boot, With(Fixed(1, static_cast<uint8_t>(0x50 + i)), kCombinations[i]));
  }
  Ping(boot, 1, kPing, 1);  // of lower priority: comes after them all
  boot.Exit();
  ASSERT_TRUE(RunPrograms()) << end_.text << Doings();
  uint32_t taken[4];
  for (uint8_t i = 0; i < 4; ++i) taken[i] = Interrupts(1, static_cast<uint8_t>(0x50 + i));
  const apic::RegisterPage page = PageOf(1);
  const uint32_t tmr = page.Get(static_cast<uint32_t>(Reg::kTmr0) + 0x20);
  SKIP_IF_KVM_DIFFERS(
      taken[2] == 1 && tmr == 0,
      "a fixed IPI with trigger mode 1 is level-triggered, and lost with level 0 (11.6.1)");
  for (const uint32_t count : taken) EXPECT_EQ(count, 1u);
  EXPECT_EQ(tmr, 0u);
}

// Case A4: Linux's order is one INIT and one start.
TEST_P(EachMode, AssertDeassertAndTwoSipisAreOneStart) {
  MakeProgrammed(Cpus(2));
  Serve(1);
  Program& boot = Of(0);
  BeReachable(boot);
  Enable(boot);
  Send(boot, With(Init(), {true, true}));
  Send(boot, With(Init(), {true, false}));
  Send(boot, StartUp());
  Send(boot, StartUp());
  boot.WaitFor(WordGpa(0), 1);
  Ping(boot, 1, kPing, 1);
  boot.Exit();
  ASSERT_TRUE(RunPrograms()) << end_.text << Doings();
  EXPECT_EQ(Starts(1), 1u);
  if (user_) {
    EXPECT_EQ(machine_->Counters().at("inits"), 1u);
  }
}

}  // namespace
}  // namespace sipi
