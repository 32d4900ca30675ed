// RunMachine with the real guest.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "tests/machine/machine_fixture.h"
#include "vmm/kvm/linux_kvm.h"
#include "vmm/machine/run.h"

namespace sipi {
namespace {

RunConfig ConfigFor(uint32_t cpus, IrqchipKind irqchip, sequence::StrategyId strategy) {
  RunConfig config;
  config.cpus = cpus;
  config.topology = FlatTopology(cpus);
  config.irqchip = irqchip;
  config.strategy = sequence::MakeStrategy(strategy);
  config.order.resize(cpus - 1);
  std::iota(config.order.begin(), config.order.end(), 1u);
  config.serial_fd = -1;
  config.time_limit_ms = 30'000;
  return config;
}

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_P(EachIrqchip, EveryStrategyBringsEveryCpuOnlineDrivenByGuestAndHost) {
  for (uint32_t id = 0; id < sequence::kStrategyCount; ++id) {
    for (const abi::Driver driver : {abi::Driver::kGuest, abi::Driver::kHost}) {
      const auto strategy = static_cast<sequence::StrategyId>(id);
      RunConfig config = ConfigFor(5, GetParam(), strategy);
      config.driver = driver;
      const auto record = RunMachine(config, stop_);
      ASSERT_TRUE(record.ok()) << record.status();
      EXPECT_EQ(record->outcome, Outcome::kComplete)
          << sequence::BaseName(strategy) << ": " << record->diagnosis;
      EXPECT_EQ(record->cpus_online, 5u);
      // A CPU that is stopped while it writes a record leaves that one unfinished.
      EXPECT_LE(record->lost_events, 4u);
      EXPECT_TRUE(record->complete);
      // What nobody counts is not 0.
      EXPECT_EQ(record->counters.contains("ipis"), GetParam() == IrqchipKind::kUser);
      EXPECT_EQ(record->counters.contains("inits"), GetParam() == IrqchipKind::kUser);
      EXPECT_GE(record->counters.at("startups"), 4u);
    }
  }
}

TEST_P(EachIrqchip, XApicModeWorksToo) {
  RunConfig config = ConfigFor(6, GetParam(), sequence::StrategyId::kFull);
  config.apic_mode = abi::ApicMode::kXApic;
  const auto record = RunMachine(config, stop_);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->outcome, Outcome::kComplete) << record->diagnosis;
  EXPECT_EQ(record->apic, "xapic");
}

TEST_P(EachIrqchip, ACpuThatNeverStartsMakesAPartialRunThatNamesIt) {
  RunConfig config = ConfigFor(5, GetParam(), sequence::StrategyId::kFull);
  config.fault = {.kind = abi::Fault::kNoStart, .cpu = 3};
  config.knobs.handshake_timeout_ms = 300;
  const auto record = RunMachine(config, stop_);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->outcome, Outcome::kPartial) << record->diagnosis;
  EXPECT_EQ(record->cpus_online, 4u);
  EXPECT_TRUE(Has(record->diagnosis, "1 of 5 CPUs are not online: CPU 3 (APIC ID 3)"))
      << record->diagnosis;
  EXPECT_FALSE(record->cpus[3].online);
  EXPECT_TRUE(record->cpus[4].online);
}

TEST_P(EachIrqchip, AHungApIsReportedAtTheTimeLimit) {
  RunConfig config = ConfigFor(3, GetParam(), sequence::StrategyId::kSerial);
  config.fault = {.kind = abi::Fault::kHang, .cpu = 2};
  config.time_limit_ms = 400;
  const auto record = RunMachine(config, stop_);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->outcome, Outcome::kTimeLimit);
  EXPECT_FALSE(record->complete);
  EXPECT_TRUE(Has(record->diagnosis, "the time limit of 400 ms")) << record->diagnosis;
  EXPECT_TRUE(Has(record->cpus[2].doing, "running, IF=0, RIP 0x")) << record->cpus[2].doing;
}

TEST_P(EachIrqchip, ATripleFaultOnAnApIsNamed) {
  RunConfig config = ConfigFor(8, GetParam(), sequence::StrategyId::kKick);
  config.fault = {.kind = abi::Fault::kTripleFault, .cpu = 5};
  const auto record = RunMachine(config, stop_);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->outcome, Outcome::kGuestFault);
  EXPECT_TRUE(Has(record->diagnosis, "triple fault on CPU 5; CPU 5 (APIC ID 5): RIP 0x"))
      << record->diagnosis;
  EXPECT_TRUE(Has(record->diagnosis, "IDT base 0x0 limit 0x0")) << record->diagnosis;
  EXPECT_TRUE(Has(record->diagnosis, "EFER 0x500")) << record->diagnosis;
  EXPECT_TRUE(Has(record->diagnosis, "bytes at RIP: 0f 0b")) << record->diagnosis;
}

TEST_P(EachIrqchip, AGuestExceptionIsTold) {
  RunConfig config = ConfigFor(3, GetParam(), sequence::StrategyId::kSerial);
  config.fault = {.kind = abi::Fault::kException, .cpu = 1};
  const auto record = RunMachine(config, stop_);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->outcome, Outcome::kGuestFault);
  EXPECT_TRUE(Has(record->diagnosis, "guest exception on CPU 1: divide error (vector 0)"))
      << record->diagnosis;
}

TEST_P(EachIrqchip, AllHaltedIsDetectedAndSaid) {
  RunConfig config = ConfigFor(4, GetParam(), sequence::StrategyId::kFull);
  config.fault = {.kind = abi::Fault::kHaltAll, .cpu = 1};
  const auto record = RunMachine(config, stop_);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->outcome, Outcome::kAllHalted) << record->diagnosis;
  EXPECT_TRUE(Has(record->diagnosis, "all CPUs are halted")) << record->diagnosis;
}

TEST_P(EachIrqchip, AStopRequestMidwayLeavesAnIncompleteTimeline) {
  RunConfig config = ConfigFor(3, GetParam(), sequence::StrategyId::kSerial);
  config.fault = {.kind = abi::Fault::kHang, .cpu = 2};
  StopRequest stop;
  std::thread other([&] {
    usleep(150'000);
    stop.Request(SIGTERM);
  });
  const auto record = RunMachine(config, stop);
  other.join();
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->outcome, Outcome::kInterrupted);
  EXPECT_EQ(record->signal, SIGTERM);
  EXPECT_FALSE(record->complete);
  EXPECT_FALSE(record->events.empty());
}

TEST_P(EachIrqchip, GuestAndHostEventsShareOneClock) {
  const auto record = RunMachine(ConfigFor(3, GetParam(), sequence::StrategyId::kSerial), stop_);
  ASSERT_TRUE(record.ok()) << record.status();
  const auto time_of = [&](abi::TraceEvent name, int32_t cpu) -> int64_t {
    for (const Event& event : record->events) {
      if (event.name == name && event.cpu == cpu) return event.t_ns;
    }
    return -1;
  };
  const int64_t created = time_of(abi::TraceEvent::kVmCreated, kVmTrack);
  const int64_t entry = time_of(abi::TraceEvent::kBootEntry, 0);
  const int64_t first_run = time_of(abi::TraceEvent::kFirstRun, 0);
  const int64_t online = time_of(abi::TraceEvent::kOnline, 2);
  const int64_t end = time_of(abi::TraceEvent::kRunEnd, kVmTrack);
  EXPECT_EQ(created, 0);
  EXPECT_LE(first_run, entry);
  EXPECT_LT(entry, online);
  EXPECT_LT(online, end);
  EXPECT_TRUE(std::is_sorted(record->events.begin(), record->events.end(),
                             [](const Event& a, const Event& b) { return a.t_ns < b.t_ns; }));
}

TEST_F(MachineTest, TooLittleMemoryIsRefusedWithBothNumbers) {
  RunConfig config = ConfigFor(4, IrqchipKind::kUser, sequence::StrategyId::kSerial);
  config.memory_bytes = 1 << 20;
  const auto record = RunMachine(config, stop_);
  ASSERT_FALSE(record.ok());
  EXPECT_TRUE(Has(std::string(record.status().message()), "--memory: 1048576")) << record.status();
}

TEST_F(MachineTest, InstructionsAreCountedOnRequest) {
  RunConfig config = ConfigFor(2, IrqchipKind::kUser, sequence::StrategyId::kSerial);
  config.count_instructions = true;
  const auto record = RunMachine(config, stop_);
  ASSERT_TRUE(record.ok()) << record.status();
  if (record->cpus[1].instructions == 0) GTEST_SKIP() << "this KVM emulates none";
  EXPECT_GT(record->cpus[1].instructions, 50u);
  EXPECT_EQ(record->counters.at("guest.instructions"),
            record->cpus[0].instructions + record->cpus[1].instructions);
}

TEST_F(MachineTest, ManyRunsInOneProcessAllComplete) {
  for (int i = 0; i < 10; ++i) {
    const auto record =
        RunMachine(ConfigFor(8, IrqchipKind::kUser, sequence::StrategyId::kBroadcast), stop_);
    ASSERT_TRUE(record.ok()) << record.status();
    EXPECT_EQ(record->outcome, Outcome::kComplete) << record->diagnosis;
  }
}

}  // namespace
}  // namespace sipi
