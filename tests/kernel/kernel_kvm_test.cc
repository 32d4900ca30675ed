// The kernel with its services on vCPUs: the same lines as in the simulator, on real registers.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "vmm/machine/run.h"

namespace sipi {
namespace {

bool KvmIsMissing() {
  const int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
  if (kvm >= 0) close(kvm);
  return kvm < 0;
}

RunRecord RunServices(uint32_t cpus, abi::Scenario scenario, abi::Preemption preemption) {
  RunConfig config;
  config.cpus = cpus;
  config.time_limit_ms = 300'000;
  config.topology = FlatTopology(cpus);
  for (uint32_t cpu = 1; cpu < cpus; ++cpu) config.order.push_back(cpu);
  config.strategy = sequence::MakeStrategy(sequence::StrategyId::kFull);
  config.serial_fd = -1;
  config.scenario = scenario;
  config.kernel.services = 1;
  config.kernel.preemption = preemption;
  StopRequest stop;
  absl::StatusOr<RunRecord> record = RunMachine(config, stop);
  EXPECT_TRUE(record.ok()) << record.status();
  return record.ok() ? *std::move(record) : RunRecord();
}

TEST(KernelOnKvm, TheSchedulerHoldsAgainstItself) {
  if (KvmIsMissing()) GTEST_SKIP() << "/dev/kvm cannot be opened";
  for (const uint32_t cpus : {1u, 2u, 4u, 16u, 64u}) {
    SCOPED_TRACE(cpus);
    const RunRecord record = RunServices(cpus, abi::Scenario::kThreads, abi::Preemption::kFull);
    EXPECT_EQ(record.outcome, Outcome::kComplete) << record.diagnosis;
    EXPECT_EQ(record.cpus_online, cpus);
  }
}

TEST(KernelOnKvm, InEachPreemptionModel) {
  if (KvmIsMissing()) GTEST_SKIP() << "/dev/kvm cannot be opened";
  for (const abi::Preemption model :
       {abi::Preemption::kNone, abi::Preemption::kVoluntary, abi::Preemption::kLazy}) {
    const RunRecord record = RunServices(4, abi::Scenario::kThreads, model);
    EXPECT_EQ(record.outcome, Outcome::kComplete) << record.diagnosis;
  }
}

}  // namespace
}  // namespace sipi
