// rcutorture and the call_rcu workers on threads of the host: real atomics, real concurrency, and
// ThreadSanitizer in a build with it.
#include <gtest/gtest.h>

#include "bench/threads_run.h"
#include "guest/scenario/rcu_scenarios.h"

namespace sipi {
namespace {

ThreadsConfig Config(uint32_t cpus, abi::RcuFlavour flavour, uint32_t duration_ms) {
  ThreadsConfig config;
  config.cpus = cpus;
  config.kernel.rcu_flavour = flavour;
  config.kernel.rcu_fanout = 2;
  config.kernel.rcu_fanout_leaf = 2;
  config.scenario.duration_ms = duration_ms;
  config.records = 200'000;
  return config;
}

void ExpectTortureSucceeds(const ThreadsConfig& config) {
  const ThreadsResult result = RunOnThreads(config, RunTorture);
  EXPECT_TRUE(result.ok) << result.error;
  EXPECT_EQ(result.counters.failures, 0u);
  EXPECT_EQ(result.counters.callbacks_queued, result.counters.callbacks_run);
  EXPECT_GT(result.counters.gp_seq_end, result.counters.gp_seq_begin);
  EXPECT_GT(result.counters.exp_seq_end, result.counters.exp_seq_begin);
  EXPECT_GT(result.counters.reads, 0u);
  EXPECT_EQ(result.cpus_online, config.cpus);
}

TEST(TortureOnThreads, Preemptible) {
  ExpectTortureSucceeds(Config(4, abi::RcuFlavour::kPreemptible, 1000));
}

TEST(TortureOnThreads, NonPreemptible) {
  ExpectTortureSucceeds(Config(4, abi::RcuFlavour::kNonPreemptible, 1000));
}

class CallRcuOnThreads : public testing::TestWithParam<abi::WorkerPinning> {};

TEST_P(CallRcuOnThreads, RunsWhatIsQueued) {
  ThreadsConfig config = Config(3, abi::RcuFlavour::kPreemptible, 50);
  config.kernel.worker_pinning = GetParam();
  config.scenario.measurements = 20'000;
  const ThreadsResult result = RunOnThreads(config, RunCallRcu);
  EXPECT_TRUE(result.ok) << result.error;
  EXPECT_GE(result.counters.callbacks_queued, 3u * 20'000u);
  EXPECT_EQ(result.counters.callbacks_queued, result.counters.callbacks_run);
  if (GetParam() == abi::WorkerPinning::kAtStart) {
    EXPECT_EQ(result.pinned, 3u);
  }
}

INSTANTIATE_TEST_SUITE_P(Pinning, CallRcuOnThreads,
                         testing::Values(abi::WorkerPinning::kLazy, abi::WorkerPinning::kAtStart,
                                         abi::WorkerPinning::kAtFirstWork));

}  // namespace
}  // namespace sipi
