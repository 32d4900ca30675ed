// How fast the simulator is: `full` bring-up with the latencies of server-128, from 64 CPUs up.
//
//   sim_speed [MAX_CPUS [RUNS]]      default: 8192, 5
//
// Per size the median of the runs: processor time of a whole run (machine made, run, timeline
// merged, memory given back), so that other load on the host counts little, and of that per
// simulated event. An event is what the timeline shows or the queue held: both grow
// with the CPUs alone, so the cost per event should not. The process's peak memory is that of the
// largest machine so far.
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "bench/numbers.h"
#include "vmm/machine/run.h"
#include "vmm/timeline/analysis.h"

namespace sipi {
namespace {

RunConfig ConfigFor(uint32_t cpus) {
  RunConfig config;
  config.machine = MachineKind::kSim;
  config.cpus = cpus;
  config.topology = FlatTopology(cpus);
  for (uint32_t cpu = 1; cpu < cpus; ++cpu) config.order.push_back(cpu);
  config.strategy = sequence::MakeStrategy(sequence::StrategyId::kFull);
  config.profile = *LoadProfile("server-128");
  config.knobs.calibration_us = static_cast<uint32_t>(config.profile.calibration_ns / 1000);
  config.serial_fd = -1;
  config.time_limit_ms = 3'600'000;
  return config;
}

double ProcessorSeconds() {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

int Measure(uint32_t cpus, uint32_t runs) {
  const RunConfig config = ConfigFor(cpus);
  std::vector<double> seconds;
  uint64_t events = 0;
  double virtual_ms = 0;
  for (uint32_t i = 0; i < runs; ++i) {
    StopRequest stop;
    const double begin = ProcessorSeconds();
    const absl::StatusOr<RunRecord> record = RunMachine(config, stop);
    const double passed = ProcessorSeconds() - begin;
    if (!record.ok() || record->outcome != Outcome::kComplete) {
      std::fprintf(stderr, "sim_speed: %u CPUs did not come up\n", cpus);
      return 1;
    }
    seconds.push_back(passed);
    events = record->events.size() + record->counters.at("sim.events");
    virtual_ms = static_cast<double>(Analyze(*record).smpboot_ns.value_or(0)) / 1e6;
  }
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[seconds.size() / 2];
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("%6u  %12.2f  %9.2f  %9.2f  %9llu  %8.0f  %8.1f  %9.1f\n", cpus, virtual_ms,
              median * 1e3, seconds[0] * 1e3, static_cast<unsigned long long>(events),
              median * 1e9 / static_cast<double>(events), median * 1e6 / cpus,
              static_cast<double>(usage.ru_maxrss) / 1024);
  return 0;
}

}  // namespace
}  // namespace sipi

int main(int argc, char** argv) {
  const std::vector<uint64_t> numbers = sipi::bench::NumbersOf(
      argc, argv,
      "sim_speed [MAX-CPUS [RUNS]]: host time of a simulated bring-up of 64 CPUs, 128, ...",
      {{"MAX-CPUS", 8192, 64, 32'000}, {"RUNS", 5, 1, 1'000'000}});
  const auto max_cpus = static_cast<uint32_t>(numbers[0]);
  const auto runs = static_cast<uint32_t>(numbers[1]);
  std::printf(
      "  CPUs    virtual ms    host ms   (best)     events  ns/event    us/CPU   peak MiB\n");
  for (uint32_t cpus = 64; cpus <= max_cpus; cpus *= 2) {
    if (const int status = sipi::Measure(cpus, runs); status != 0) return status;
  }
  return 0;
}
