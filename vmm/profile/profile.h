// Hardware profiles: the latencies of a machine, imposed on a run. Read from JSON; see
// docs/profiles.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "guest/abi/scenario.h"

namespace sipi {

// Longest calibration window. The guest's reference clock, the ACPI PM timer, counts 24 bits at
// 3.579545 MHz (ACPI 6.5, 4.8.3.3), 4.69 s: a window must be over well before it has come round,
// also for a CPU that is late to look.
inline constexpr uint32_t kMaxCalibrationUs = 4'000'000;

// A latency: median, and the half-width of its uniform jitter.
struct Latency {
  int64_t ns = 0;
  int64_t jitter_ns = 0;
};

// All zero is `native`: nothing is imposed.
struct Profile {
  std::string name = "native";
  std::string description;
  Latency init;          // INIT accepted until the CPU waits for SIPI
  Latency startup;       // SIPI to first instruction
  Latency microcode;     // microcode update of a primary thread, before alive
  Latency cache_setup;   // MTRR and PAT set-up
  Latency identify;      // CPU identification and feature set-up in the STARTING section
  Latency online_steps;  // the ONLINE section's work
  // Scheduling domains built anew when a CPU becomes active or no longer is (hotplug with services)
  Latency sched_domains;
  Latency ipi;  // ICR write to acceptance at the target
  int64_t calibration_ns =
      0;  // length of one CPU's timer and delay calibration; 0: the default window
  int64_t init_delay_us = 0;  // default of --init-delay-us
  uint32_t tick_hz = 250;
  // Which of the kernel's hotplug steps wait for grace periods.
  abi::HotplugSteps hotplug_steps = abi::HotplugSteps::kX86;
  // The kernel of that machine: where a thread can lose its CPU, and RCU's readers too.
  abi::Preemption preemption = abi::Preemption::kFull;
  abi::RcuFlavour rcu_flavour = abi::RcuFlavour::kPreemptible;
  // CPUs that something keeps in the kernel while SMT is switched (`sipi smt --kernel-busy`).
  uint32_t kernel_busy = 0;
  std::string topology;  // default of --topology when --cpus is the machine's own, e.g.
                         // "sockets=2,cores=32,threads=2"
  uint32_t cpus = 0;     // the machine's own count; 0: any

  bool imposes_anything() const {
    return (init.ns | startup.ns | microcode.ns | cache_setup.ns | identify.ns | online_steps.ns |
            sched_domains.ns | ipi.ns) != 0;
  }
};

// The profiles that ship with the tool: native, haswell-28, skylake-96, server-128,
// ppc64-400, ppc64-960, ppc64-1920.
std::vector<std::string> BuiltinProfileNames();

// `name` is a built-in name or, if it holds a '/' or ends in ".json", a file. Errors: NotFound
// listing the names, InvalidArgument naming file, line or key, and the remedy.
absl::StatusOr<Profile> LoadProfile(absl::string_view name);

absl::StatusOr<Profile> ParseProfile(absl::string_view json, absl::string_view origin);

}  // namespace sipi
