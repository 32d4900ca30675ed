// INIT, SIPI, SIPI at whatever moment: cases A1 and A2 of the APIC's list. Their full numbers of
// rounds, 10,000 and 100,000, take minutes: SIPI_A1_ROUNDS=10000 SIPI_A2_ROUNDS=100000.
// SIPI_A1_SEED is the first round's seed, so that many processes can share the rounds.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "tests/apic_kvm/program_fixture.h"

namespace sipi {
namespace {

uint32_t FromEnvironment(const char* name, uint32_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : static_cast<uint32_t>(std::strtoul(text, nullptr, 10));
}

class StartupStress : public EachChip {};
INSTANTIATE_TEST_SUITE_P(Irqchips, StartupStress, testing::ValuesIn(kEachChip), IrqchipName);

// Case A1: the APs' threads are late by up to 50 ms, INIT and both SIPIs have long been sent then.
TEST_P(StartupStress, LateApsAreAllStartedOnceByWhatWasSentBefore) {
  constexpr uint32_t kCpus = 8;
  constexpr uint32_t kMaxDelayNs = 50'000'000;
  const uint32_t rounds = FromEnvironment("SIPI_A1_ROUNDS", 5);
  const uint32_t first_seed = FromEnvironment("SIPI_A1_SEED", 1);
  for (uint32_t seed = first_seed; seed < first_seed + rounds; ++seed) {
    SCOPED_TRACE("SIPI_A1_SEED=" + std::to_string(seed));
    MachineOptions options = Cpus(kCpus);
    options.thread_delay_ns = [seed](CpuNumber cpu) -> uint64_t {
      if (cpu.value == 0) return 0;
      std::minstd_rand random(seed * kCpus + cpu.value);
      random();
      return random() % kMaxDelayNs;
    };
    MakeProgrammed(std::move(options));
    Program& boot = Of(0);
    std::vector<size_t> starts_before;
    for (uint32_t cpu = 1; cpu < kCpus; ++cpu) {
      starts_before.push_back(boot.Read32(StartsGpa(cpu)));
      Of(cpu).Increment(WordGpa(0));
      Of(cpu).Park();
    }
    Enable(boot);
    StartOthers(boot);
    boot.Exit();
    ASSERT_TRUE(RunPrograms()) << end_.text << Doings();
    for (const size_t read : starts_before) ASSERT_EQ(Result(boot, read).low, 0u);
    for (uint32_t cpu = 0; cpu < kCpus; ++cpu) ASSERT_EQ(Starts(cpu), 1u) << "CPU " << cpu;
    machine_.reset();
  }
}

// Case A2: the AP halts between the interrupts of a short periodic timer; INIT, SIPI, SIPI come at
// 80 different phases. Each round starts it once: it is awaited in every round, and in the end it
// has been started as often as there were rounds.
TEST_P(StartupStress, EachInitSipiSipiRestartsAnApWithATimerOnce) {
  constexpr uint32_t kPhases = 80;
  constexpr uint32_t kPeriodTicks = 200'000;           // 200 us
  constexpr uint32_t kMaxDelayTscTicks = 2 * 600'000;  // some periods
  const uint32_t rounds = FromEnvironment("SIPI_A2_ROUNDS", 800) / kPhases * kPhases;
  MakeProgrammed(Cpus(2));
  Program& ap = Of(1);
  EndInterrupts(1);
  Enable(ap);
  WriteReg(ap, Reg::kTimerDivide, 0xb);
  WriteReg(ap, Reg::kLvtTimer, 0x55 | apic::kLvtTimerPeriodic);
  WriteReg(ap, Reg::kTimerInitial, kPeriodTicks);
  ap.Store(WordGpa(0), 1);
  ap.Stay();
  Program& boot = Of(0);
  BeReachable(boot);
  Enable(boot);
  const size_t first = boot.Store(WordGpa(0), 0);
  std::minstd_rand random(2);
  for (uint32_t phase = 0; phase < kPhases; ++phase) {
    if (phase != 0) boot.Store(WordGpa(0), 0);
    Send(boot, Command(DeliveryMode::kInit, 1));
    Send(boot, Command(DeliveryMode::kStartUp, 1, kInterpreterSipi));
    Send(boot, Command(DeliveryMode::kStartUp, 1, kInterpreterSipi));
    boot.WaitFor(WordGpa(0), 1);
    boot.Delay(static_cast<uint32_t>(random() % kMaxDelayTscTicks));
  }
  boot.LoopTo(first, WordGpa(1));
  boot.Exit();
  Word(WordGpa(1)) = rounds / kPhases;
  ASSERT_TRUE(RunPrograms(600'000)) << end_.text << Doings();
  EXPECT_EQ(Starts(1), rounds);
  EXPECT_GT(Interrupts(1, 0x55), rounds / 8) << "the timer came in between";
  RecordProperty("rounds", static_cast<int>(rounds));
}

}  // namespace
}  // namespace sipi
