// How fast exploration is: schedules of bring-up per second of one core.
//
//   explore_speed [SCHEDULES [CPUS]]      default: 100000, 3; CPUS 0: as each seed draws them
//
// By processor time, so that other load on the host counts little. Ends with 1 if a schedule fails:
// a figure of a broken kernel says nothing.
#include <time.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/numbers.h"
#include "vmm/explore/explorer.h"

namespace sipi {
namespace {

double ProcessorSeconds() {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

int Measure(uint64_t schedules, uint32_t cpus) {
  ExploreSpace space;
  space.cpus = cpus;
  Explorer explorer;
  const double begin = ProcessorSeconds();
  for (uint64_t seed = 1; seed <= schedules; ++seed) {
    const ExploreCase explored = CaseOf(seed, space);
    const std::string wrong = explorer.Run(explored);
    if (wrong.empty()) continue;
    std::fprintf(stderr, "explore_speed: %s: %s\n", Describe(explored).c_str(), wrong.c_str());
    return 1;
  }
  const double seconds = ProcessorSeconds() - begin;
  std::printf("%llu schedules of %s CPUs: %.2f s of processor time, %.0f per second and core\n",
              static_cast<unsigned long long>(schedules),
              cpus == 0 ? "2 to 8" : std::to_string(cpus).c_str(), seconds,
              static_cast<double>(schedules) / seconds);
  return 0;
}

}  // namespace
}  // namespace sipi

int main(int argc, char** argv) {
  const std::vector<uint64_t> numbers = sipi::bench::NumbersOf(
      argc, argv, "explore_speed [SCHEDULES [CPUS]]: schedules explored per second of one core",
      {{"SCHEDULES", 100'000, 1, 1'000'000'000}, {"CPUS", 3, 0, 64}});
  return sipi::Measure(numbers[0], static_cast<uint32_t>(numbers[1]));
}
