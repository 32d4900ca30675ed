// call_rcu workers: callbacks per second of the guest's own (guest/kernel/callrcu on threads of the
// host), with each way of pinning a worker to its CPU, beside liburcu's per-CPU workers.
//
//   call_rcu_rate [ROUNDS [CALLBACKS]]      default: 5 rounds of 2000000 callbacks
//
// One updater on CPU 0, then one on each of two CPUs: together they queue CALLBACKS callbacks, each
// in 64 bytes of its own from malloc, which it gives back. The time runs from the first call until
// all have run. Subjects take turns; shown are the median and the extremes of the rounds, in
// millions of callbacks per second. "away" counts the moves of workers to other CPUs than their
// own, "pinned" the workers that have bound themselves by the end.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/numbers.h"
#include "bench/rcu_peer.h"
#include "bench/threads_run.h"
#include "guest/kernel/callrcu/call_rcu.h"
#include "guest/scenario/crew.h"

namespace sipi::bench {
namespace {

constexpr uint32_t kCpus = 2;
constexpr uint64_t kCallsPerLook = 64;  // how often an updater lets interrupts in

struct Job {
  uint32_t updaters = 1;
  uint64_t count = 0;  // of each
  double seconds = 0;
};
Job g_job;  // RunOnThreads' body has no other way to it

struct Element : rcu::Head {
  char rest[64 - sizeof(rcu::Head)];
};
static_assert(sizeof(Element) == 64);

struct Updater : CrewMember {
  callrcu::Workers* workers = nullptr;
};

void Free(rcu::Head& head) { std::free(static_cast<Element*>(&head)); }

void Update(CrewMember& member) {
  auto& self = static_cast<Updater&>(member);
  self.crew->AwaitStart();
  for (uint64_t i = 0; i < g_job.count; ++i) {
    auto* element = static_cast<Element*>(std::malloc(sizeof(Element)));
    callrcu::Call(*self.workers, *element, Free);
    if (i % kCallsPerLook == 0) IrqGuard();
  }
}

// In the guest's thread "init".
void Measure(Kernel& kernel) {
  callrcu::Workers& workers = callrcu::Start(kernel);
  Crew& crew = MakeCrew(kernel);
  for (uint32_t i = 0; i < g_job.updaters; ++i) {
    auto& updater = *AllocateArray<Updater>(kernel, 1);
    updater.workers = &workers;
    updater.body = Update;
    crew.Spawn(updater, {.name = "updater/%", .index = i, .cpu = i});
  }
  const uint64_t begin_ns = platform::NowNs();
  crew.Start();
  crew.Join();
  callrcu::Barrier(workers);
  g_job.seconds = static_cast<double>(platform::NowNs() - begin_ns) * 1e-9;
  callrcu::Stop(workers);
}

struct Row {
  std::string name;
  uint32_t updaters = 1;
  const RcuPeer* peer = nullptr;  // null: the guest's, with:
  abi::WorkerPinning pinning = abi::WorkerPinning::kLazy;
  std::vector<double> rates = {};
  uint64_t ran_away = 0;
  uint64_t pinned = 0;
};

bool MeasureOnce(Row& row, uint64_t callbacks) {
  g_job = {.updaters = row.updaters, .count = callbacks / row.updaters, .seconds = 0};
  if (row.peer != nullptr) {
    g_job.seconds = row.peer->call_rcu(row.updaters, g_job.count);
  } else {
    ThreadsConfig config;
    config.cpus = kCpus;
    config.kernel.worker_pinning = row.pinning;
    // A membarrier that is not expedited would be as slow as a normal grace period.
    config.kernel.rcu_expedited = 1;
    const ThreadsResult result = RunOnThreads(config, Measure);
    if (!result.ok) {
      std::fprintf(stderr, "call_rcu_rate: the guest did not end well: %s\n", result.error.c_str());
      return false;
    }
    row.ran_away += result.ran_away;
    row.pinned += result.pinned;
  }
  if (g_job.seconds <= 0) return false;
  row.rates.push_back(static_cast<double>(g_job.count * row.updaters) / g_job.seconds * 1e-6);
  return true;
}

std::vector<Row> Rows() {
  std::vector<Row> rows;
  for (uint32_t updaters = 1; updaters <= kCpus; ++updaters) {
    rows.push_back({"guest, lazily", updaters, nullptr, abi::WorkerPinning::kLazy});
    rows.push_back({"guest, at start", updaters, nullptr, abi::WorkerPinning::kAtStart});
    rows.push_back({"guest, at first work", updaters, nullptr, abi::WorkerPinning::kAtFirstWork});
    for (const RcuPeer& peer : RcuPeers()) rows.push_back({peer.name, updaters, &peer});
  }
  return rows;
}

int Run(int rounds, uint64_t callbacks) {
  std::vector<Row> rows = Rows();
  for (int round = 0; round < rounds; ++round) {
    for (Row& row : rows) {
      if (!MeasureOnce(row, callbacks)) return 1;
    }
  }
  std::printf("%-24s  %8s  %6s  %6s  %6s  %6s  %6s\n", "", "updaters", "median", "min", "max",
              "pinned", "away");
  for (Row& row : rows) {
    std::sort(row.rates.begin(), row.rates.end());
    std::printf("%-24s  %8u  %6.2f  %6.2f  %6.2f", row.name.c_str(), row.updaters,
                row.rates[row.rates.size() / 2], row.rates.front(), row.rates.back());
    if (row.peer == nullptr) {
      std::printf("  %6.1f  %6.1f", static_cast<double>(row.pinned) / rounds,
                  static_cast<double>(row.ran_away) / rounds);
    }
    std::printf("\n");
  }
  if (RcuPeers().empty()) {
    std::printf("liburcu is missing beside them: install liburcu-dev and configure anew\n");
  }
  return 0;
}

}  // namespace
}  // namespace sipi::bench

int main(int argc, char** argv) {
  const std::vector<uint64_t> numbers = sipi::bench::NumbersOf(
      argc, argv,
      "call_rcu_rate [ROUNDS [CALLBACKS]]: the rate of call_rcu workers, beside liburcu.",
      {{"ROUNDS", 5, 1, 1'000'000}, {"CALLBACKS", 2'000'000, 2, 1'000'000'000}});
  return sipi::bench::Run(static_cast<int>(numbers[0]), numbers[1]);
}
