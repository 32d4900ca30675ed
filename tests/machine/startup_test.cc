// INIT, SIPI and IPIs between real vCPUs.
#include <gtest/gtest.h>

#include <random>

#include "tests/machine/machine_fixture.h"
#include "vmm/device/monotonic_clock.h"

namespace sipi {
namespace {

// For all files of this program.
INSTANTIATE_TEST_SUITE_P(Irqchips, EachIrqchip,
                         testing::Values(IrqchipKind::kUser, IrqchipKind::kSplit,
                                         IrqchipKind::kKernel),
                         IrqchipName);

TEST_P(EachIrqchip, BootCpuRunsAndEndsTheMachine) {
  Make(Options(1, GetParam()), payload::boot_exit());
  const RunEnd end = Run();
  EXPECT_EQ(end.kind, EndKind::kGuestExit) << end.text;
  EXPECT_EQ(end.code, kExitValue);
}

TEST_P(EachIrqchip, OneBroadcastStartsEveryApExactlyOnce) {
  Make(Options(32, GetParam()), payload::boot_start_then_exit(), payload::ap_count_and_halt());
  EXPECT_EQ(Run().kind, EndKind::kGuestExit) << Doings();
  for (uint64_t cpu = 1; cpu < 32; ++cpu) {
    EXPECT_EQ(Word(kCountGpa + cpu * 4), 1u) << "the second SIPI must not count, CPU " << cpu;
  }
}

// Case A1: the AP's thread is late, INIT and both SIPIs come before it does anything.
TEST_P(EachIrqchip, InitAndSipiSentBeforeTheApsThreadRunsAreKept) {
  for (uint32_t seed = 1; seed <= 12; ++seed) {
    MachineOptions options = Options(8, GetParam());
    options.thread_delay_ns = [seed](CpuNumber cpu) -> uint64_t {
      if (cpu.value == 0) return 0;
      std::minstd_rand random(seed * 1000 + cpu.value);
      return random() % 20'000'000;
    };
    Make(std::move(options), payload::boot_start_then_exit(), payload::ap_count_and_halt());
    EXPECT_EQ(Run().kind, EndKind::kGuestExit) << Doings();
    for (uint64_t cpu = 1; cpu < 8; ++cpu) EXPECT_EQ(Word(kCountGpa + cpu * 4), 1u);
    machine_.reset();
  }
}

// Case A2: INIT wakes a halted CPU and each INIT-SIPI-SIPI restarts it once.
TEST_P(EachIrqchip, EachInitSipiSipiRestartsAHaltedApOnce) {
  Make(Options(2, GetParam()), payload::boot_restart_one(), payload::ap_count_and_halt());
  Word(kRoundsGpa) = 1000;
  EXPECT_EQ(Run(60'000).kind, EndKind::kGuestExit) << Doings();
  EXPECT_EQ(Word(kCountGpa + 4), 1000u);
}

TEST_P(EachIrqchip, NoInterruptIsLostBetweenHaltedCpus) {
  Make(Options(4, GetParam()), payload::boot_ring(), payload::ap_ring(), payload::handler_ring());
  Word(kRoundsGpa) = 4000;
  EXPECT_EQ(Run(60'000).kind, EndKind::kGuestExit) << Doings() << "total " << Word(kTotalGpa);
  EXPECT_EQ(Word(kTotalGpa), 4000u);
}

TEST_P(EachIrqchip, NoInterruptIsLostBetweenTwoHaltedCpus) {
  Make(Options(2, GetParam()), payload::boot_ring(), payload::ap_ring(), payload::handler_ring());
  Word(kRoundsGpa) = 4000;
  EXPECT_EQ(Run(60'000).kind, EndKind::kGuestExit) << Doings() << "total " << Word(kTotalGpa);
}

// The target is inside the guest: the sender has to get it out.
TEST_P(EachIrqchip, NoInterruptIsLostBetweenRunningCpus) {
  Make(Options(3, GetParam()), payload::boot_ring_spinning(), payload::ap_ring_spinning(),
       payload::handler_ring());
  Word(kRoundsGpa) = 300;
  EXPECT_EQ(Run(60'000).kind, EndKind::kGuestExit) << Doings() << "total " << Word(kTotalGpa);
}

TEST_P(EachIrqchip, NmiWakesACpuThatHaltsWithInterruptsOff) {
  Make(Options(2, GetParam()), payload::boot_nmi(), payload::ap_count_and_halt(),
       payload::handler_exit(), /*vector=*/2);
  const RunEnd end = Run(10'000);
  EXPECT_EQ(end.kind, EndKind::kGuestExit) << Doings();
  EXPECT_EQ(end.cpu, CpuNumber(GetParam() == IrqchipKind::kUser ? 1 : end.cpu.value));
}

TEST_P(EachIrqchip, ApicTimerWakesAHaltedCpu) {
  Make(Options(1, GetParam()), payload::boot_timer_halt(), {}, payload::handler_exit());
  EXPECT_EQ(Run(10'000).kind, EndKind::kGuestExit) << Doings();
}

TEST_P(EachIrqchip, ApicTimerInterruptsARunningCpu) {
  Make(Options(1, GetParam()), payload::boot_timer_spin(), {}, payload::handler_exit());
  EXPECT_EQ(Run(10'000).kind, EndKind::kGuestExit) << Doings();
}

TEST_P(EachIrqchip, TscDeadlineWakesAHaltedCpu) {
  Make(Options(1, GetParam()), payload::boot_deadline_halt(), {}, payload::handler_exit());
  EXPECT_EQ(Run(10'000).kind, EndKind::kGuestExit) << Doings();
}

// Case A14: sparse IDs, some above 255.
TEST_P(EachIrqchip, SparseApicIdsAreStarted) {
  MachineOptions options = Options(5, GetParam());
  ASSERT_TRUE(SetApicIds("7,0,254,256,4095", options.topology).ok());
  // Their stacks would lie below 0: this payload needs none.
  Make(std::move(options), payload::boot_start_then_exit(), payload::ap_count_and_halt());
  EXPECT_EQ(Run(10'000).kind, EndKind::kGuestExit) << Doings();
  for (const uint64_t id : {0u, 254u, 256u, 4095u}) EXPECT_EQ(Word(kCountGpa + id * 4), 1u) << id;
}

TEST_P(EachIrqchip, OnlyTheBootCpuHasTheBspBit) {
  Make(Options(1, GetParam()), payload::boot_dump_apic_base());
  ASSERT_EQ(Run().kind, EndKind::kGuestExit);
  EXPECT_EQ(Word(kTotalGpa), 0xfee00d00u);  // base, EN, EXTD, BSP
}

// Case A6: a BSP restarts at F000:FFF0 and is not parked.
TEST_P(EachIrqchip, InitToTheBootCpuRestartsItAtTheResetVector) {
  MachineOptions options = Options(2, GetParam());
  options.firmware_present = true;
  Make(std::move(options), payload::boot_start_then_halt(), payload::ap_init_boot_cpu());
  alignas(4096) static std::byte rom[4096] = {};
  const auto code = payload::boot_exit();
  // 16 bytes from the reset vector to the end: jump back to the ROM's start.
  constexpr unsigned char kJump[] = {0xe9, 0x0d, 0xf0};  // JMP rel16, to F000:F000
  std::copy(code.begin(), code.end(), rom);
  std::copy_n(reinterpret_cast<const std::byte*>(kJump), sizeof kJump, rom + 0xff0);
  ASSERT_TRUE(machine_->vm().SetMemoryRegion(7, Gpa(0xfffff000), sizeof rom, rom).ok());
  const RunEnd end = Run(10'000);
  EXPECT_EQ(end.kind, EndKind::kGuestExit) << end.text << Doings();
  EXPECT_EQ(end.code, kExitValue);
}

using UserIrqchipTest = MachineTest;

TEST_F(UserIrqchipTest, InitToTheBootCpuWithoutFirmwareIsReported) {
  Make(Options(2), payload::boot_start_then_halt(), payload::ap_init_boot_cpu());
  const RunEnd end = Run(10'000);
  EXPECT_EQ(end.kind, EndKind::kFault);
  EXPECT_NE(end.text.find("INIT reached CPU 0"), std::string::npos) << end.text;
  EXPECT_NE(end.text.find("F000:FFF0"), std::string::npos) << end.text;
}

TEST_F(UserIrqchipTest, InterruptsAndWakeUpsAreCounted) {
  Make(Options(2), payload::boot_ring(), payload::ap_ring(), payload::handler_ring());
  Word(kRoundsGpa) = 100;
  ASSERT_EQ(Run().kind, EndKind::kGuestExit) << Doings();
  const auto counters = machine_->Counters();
  EXPECT_EQ(counters.at("ipis"), 100u);
  EXPECT_EQ(counters.at("interrupts"), 100u);
  EXPECT_EQ(counters.at("inits"), 1u);
  EXPECT_EQ(counters.at("startups"), 1u);
  EXPECT_EQ(counters.at("startups.sent"), 2u);
  EXPECT_EQ(counters.at("startups.ignored"), 1u);
  EXPECT_LE(counters.at("wakeups"), counters.at("ipis") + 3);
}

abi::FaultSpec FaultOn(uint32_t cpu, abi::Fault kind, uint64_t value = 0) {
  abi::FaultSpec fault;
  fault.kind = kind;
  fault.cpu = cpu;
  fault.value = value;
  return fault;
}

// Case A13.
TEST_F(UserIrqchipTest, EitherSipiIsEnough) {
  for (const abi::Fault lost :
       {abi::Fault::kLostSipi1, abi::Fault::kLostSipi2, abi::Fault::kLostInit}) {
    MachineOptions options = Options(8);
    options.fault = FaultOn(3, lost);
    Make(std::move(options), payload::boot_start_then_exit(), payload::ap_count_and_halt());
    EXPECT_EQ(Run(10'000).kind, EndKind::kGuestExit) << Doings();
    EXPECT_EQ(machine_->Counters().at("startup.dropped"), 1u);
    machine_.reset();
  }
}

TEST_F(UserIrqchipTest, ACpuThatLosesBothSipisIsTheOnlyOneMissing) {
  MachineOptions options = Options(8);
  options.fault = FaultOn(3, abi::Fault::kLostSipis);
  Make(std::move(options), payload::boot_start_then_exit(), payload::ap_count_and_halt());
  EXPECT_EQ(Run(500).kind, EndKind::kTimeLimit);
  EXPECT_EQ(Word(kReadyGpa), 6u);
  EXPECT_EQ(machine_->Doing(CpuNumber(3)), "waiting for SIPI");
  EXPECT_EQ(machine_->Counters().at("startup.dropped"), 2u);
}

TEST_P(EachIrqchip, ALateApIsHeldForItsTime) {
  MachineOptions options = Options(3, GetParam());
  options.fault = FaultOn(2, abi::Fault::kLate, 200);
  Make(std::move(options), payload::boot_start_then_exit(), payload::ap_count_and_halt());
  const uint64_t begin_ns = MonotonicNs();
  EXPECT_EQ(Run(10'000).kind, EndKind::kGuestExit) << Doings();
  EXPECT_GE(MonotonicNs() - begin_ns, 190'000'000u);
}

TEST_P(EachIrqchip, ACpuThatNeverStartsIsNamed) {
  MachineOptions options = Options(3, GetParam());
  options.fault = FaultOn(2, abi::Fault::kNoStart);
  Make(std::move(options), payload::boot_start_then_exit(), payload::ap_count_and_halt());
  EXPECT_EQ(Run(300).kind, EndKind::kTimeLimit);
  EXPECT_EQ(Word(kReadyGpa), 1u);
  EXPECT_NE(machine_->Doing(CpuNumber(2)).find("no-start"), std::string::npos);
}

TEST_F(UserIrqchipTest, ProfileLatenciesAreImposedWhileTheApSleeps) {
  MachineOptions options = Options(3);
  options.profile.init = {.ns = 5'000'000};
  options.profile.startup = {.ns = 20'000'000, .jitter_ns = 1'000'000};
  Make(std::move(options), payload::boot_start_then_exit(), payload::ap_count_and_halt());
  ASSERT_EQ(Run(10'000).kind, EndKind::kGuestExit) << Doings();
  const auto counters = machine_->Counters();
  EXPECT_EQ(counters.at("imposed.sleeps"), 4u);
  EXPECT_GE(counters.at("imposed.ns"), 2u * (5'000'000 + 19'000'000));
  const Timeline timeline = Collect({}, machine_->Tracks(), machine_->clock());
  int64_t sipi_ns = 0;
  int64_t first_run_ns = 0;
  for (const Event& event : timeline.events) {
    if (event.cpu != 1) continue;
    if (event.name == abi::TraceEvent::kSipiDelivered) sipi_ns = event.t_ns;
    if (event.name == abi::TraceEvent::kFirstRun) first_run_ns = event.t_ns;
  }
  EXPECT_GE(first_run_ns - sipi_ns, 19'000'000);
}

TEST_F(UserIrqchipTest, IpiLatencyDelaysEveryInterrupt) {
  MachineOptions options = Options(2);
  options.profile.ipi = {.ns = 2'000'000};
  Make(std::move(options), payload::boot_ring(), payload::ap_ring(), payload::handler_ring());
  Word(kRoundsGpa) = 20;
  const uint64_t begin_ns = MonotonicNs();
  ASSERT_EQ(Run(10'000).kind, EndKind::kGuestExit) << Doings();
  EXPECT_GE(MonotonicNs() - begin_ns, 20 * 2'000'000u);
}

TEST_P(EachIrqchip, AChargeHoldsTheCpuForTheProfilesTime) {
  MachineOptions options = Options(1, GetParam());
  options.profile.identify = {.ns = 30'000'000};
  Make(std::move(options), payload::boot_charge());
  const uint64_t begin_ns = MonotonicNs();
  ASSERT_EQ(Run().kind, EndKind::kGuestExit);
  EXPECT_GE(MonotonicNs() - begin_ns, 30'000'000u);
  EXPECT_EQ(machine_->Counters().at("imposed.ns"), 30'000'000u);
}

}  // namespace
}  // namespace sipi
