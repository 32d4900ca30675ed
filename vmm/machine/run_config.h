// Everything that says what one run is. Filled from the command line, read by the machine; plain
// data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "guest/abi/boot_params.h"
#include "guest/sequence/strategy.h"
#include "vmm/cpu/topology.h"
#include "vmm/profile/profile.h"

namespace sipi {

// Another guest than guest.elf.
struct PayloadConfig {
  std::string path;
  std::string append;                    // to the command line
  std::vector<std::string> environment;  // KEY=VALUE each; handed over as a module
};

enum class IrqchipKind { kUser, kSplit, kKernel };

enum class MachineKind { kKvm, kSim };

// CPUID features that the guest is not to see.
struct HiddenFeatures {
  bool x2apic = false;
  bool tsc_deadline = false;
};

// Each CPU loses its core every `period_ms`, on average, for `min_ms` to `max_ms`.
struct StealConfig {
  uint32_t period_ms = 0;  // 0: never
  uint32_t min_ms = 0;
  uint32_t max_ms = 0;
};

struct RunConfig {
  MachineKind machine = MachineKind::kKvm;
  uint32_t cpus = 4;
  Topology topology;  // already checked against `cpus` and the host's limits
  IrqchipKind irqchip = IrqchipKind::kUser;
  abi::ApicMode apic_mode = abi::ApicMode::kX2Apic;
  HiddenFeatures hidden;
  sequence::Strategy strategy = sequence::MakeStrategy(sequence::StrategyId::kSerial);
  abi::Driver driver = abi::Driver::kGuest;
  abi::Knobs knobs;
  Profile profile;              // `native` unless asked for
  std::vector<uint32_t> order;  // CPUs to bring up, in this order; without CPU 0
  bool smt = true;              // false: `order` names primary threads only
  bool retry = false;           // CPUs that failed are brought up once more
  bool settle = false;          // ... and once more after the scenario (abi::kMarkSettle)
  std::optional<PayloadConfig> payload;
  bool kvm_icr = false;  // invalid interrupt commands do what KVM's own APIC does, not nothing
  abi::Scenario scenario = abi::Scenario::kSmpboot;
  uint64_t scenario_value = 0;
  abi::KernelKnobs kernel;  // services: 1 with the scenarios from abi::Scenario::kHotplug on
  abi::ScenarioKnobs scenario_knobs;
  abi::FaultSpec fault;                 // what to break, see abi::Fault
  std::vector<uint32_t> firmware_lies;  // CPUs whose CPUID shows another APIC ID than their APIC
  bool clock_known =
      false;  // hand the TSC frequency to the guest instead of a PM timer to calibrate against
  int64_t time_limit_ms =
      60'000;  // of the whole run; then it ends with a report of what each CPU was doing
  uint64_t memory_bytes = 0;            // 0: as much as the guest needs
  uint64_t seed = 1;                    // of jitter and random orders
  uint32_t host_cores = 0;              // simulator: cores that all CPUs share; 0: one each
  StealConfig steal;                    // simulator: other guests take the CPUs' cores
  int serial_fd = 1;                    // where the guest's serial output goes; -1: nowhere
  bool empty_serial_file = false;       // if that is a file: empty it once the machine exists
  bool count_instructions = false;      // also read KVM's count of emulated instructions per vCPU
  std::string kvm_device = "/dev/kvm";  // KvmOptions::path; another one only in tests
};

}  // namespace sipi
