// One run as data: what was asked for, what happened (one time-ordered list of events), and how it
// ended. Everything that the tool prints is computed from it (timeline/analysis.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "apic/regs/types.h"
#include "guest/abi/boot_params.h"
#include "guest/abi/cpuhp_state.h"
#include "guest/abi/handshake.h"
#include "guest/abi/trace.h"

namespace sipi {

inline constexpr int32_t kVmTrack = -1;  // Event::cpu of events that belong to no CPU

struct Event {
  int64_t t_ns = 0;  // since the first event of the run; monotone over the list
  int32_t cpu = kVmTrack;
  abi::TraceEvent name = abi::TraceEvent::kNone;
  uint16_t target = 0;  // CPU number, or abi::kAllTargets
  uint32_t value = 0;
};

struct HostInfo {
  std::string kvm_module;  // e.g. "kvm_amd"
  std::string cpu;
  uint32_t cores = 0;
  std::string kernel;
};

// How a run ended. The process's exit status follows from it (docs/formats.md).
enum class Outcome {
  kComplete,    // every CPU wanted is online
  kPartial,     // the guest ended, CPUs are missing
  kGuestFault,  // triple fault, guest panic, exception, failed entry, emulation failure
  kAllHalted,   // nothing can ever happen again
  kTimeLimit,
  kInterrupted,  // SIGHUP, SIGINT, SIGTERM
  kGuestExit,    // a payload ended the machine with a status of its own
  kGuestReset,   // a payload reset or rebooted the machine
};

// Of a run of another guest than guest.elf.
struct PayloadResult {
  std::string file;
  std::string kind;         // "PVH", "multiboot", "64-bit ELF"
  uint8_t exit_status = 0;  // kGuestExit: what it ended with
};

// Of a run whose kernel had its services (scheduler, RCU, hotplug): what it was asked to do.
struct ServicesInfo {
  abi::Scenario scenario = abi::Scenario::kSmpboot;
  abi::KernelKnobs kernel;
  abi::ScenarioKnobs knobs;
  abi::TortureCounters counters = {};  // what the scenario left in them
};

struct CpuFinal {
  CpuNumber cpu;
  ApicId apic_id;
  abi::SyncState sync_state = abi::SyncState::kDead;
  abi::CpuhpState cpuhp_state = abi::CpuhpState::kOffline;
  uint32_t error = 0;  // abi::GuestError
  bool online = false;
  bool wanted = true;    // to be brought up; false for siblings with --smt=off
  bool retried = false;  // brought up once more, since it had failed with first_error
  uint32_t first_error = 0;
  uint32_t tsc_khz = 0;
  uint64_t instructions = 0;  // emulated by KVM, if it was asked to count
  std::string doing;  // what the CPU was doing at the end, where that matters: "running, RIP
                      // 0x...", "halted, IF=0"
};

struct RunRecord {
  std::string machine = "kvm";
  HostInfo host;
  std::string irqchip, apic, strategy, profile, driver;
  uint64_t seed = 0;
  uint32_t cpus_offered = 0;
  uint32_t cpus_wanted = 0;  // to be online in the end: all, but with --smt=off primaries only
  uint32_t cpus_online = 0;
  std::string smt_control;  // "on", "off", "notsupported": as Linux has it in sysfs
  std::vector<CpuFinal> cpus;
  std::map<std::string, uint64_t>
      counters;  // "exits", "exits.hlt", "ipis", "wakeups", "inits", "startups", ...
  std::vector<Event> events;
  uint64_t lost_events = 0;
  bool complete = true;  // false: the run was cut short, the timeline ends early
  Outcome outcome = Outcome::kComplete;
  int signal = 0;  // kInterrupted: which
  std::optional<PayloadResult> payload;
  std::optional<ServicesInfo> services;
  bool serial_failed = false;      // its serial output could not be written
  std::string diagnosis;           // for people: what happened, empty if all went well
  std::vector<std::string> notes;  // worth saying: vetoes, dropped serial bytes, lost events
};

// True if the guest refused the parallel strategy that was asked for and came up serially (the
// timeline's `veto` event; its value says why).
bool WasVetoed(const RunRecord& record);

// What is said of events that were lost (RunRecord::notes); precondition: some were.
std::string LostEventsNote(uint64_t lost_events);

// "AMD EPYC, 2 cores, kvm_amd, Linux 6.1.0"; what is unknown is left out.
std::string HostLine(const HostInfo& host);

// Of a CPU's failures, the one that it had at first (`retried`), and the one it was left with.
enum class WhichFailure { kFirst, kLast };

// What failed, for people: "cpuhp step sched:active failed", "gave no sign of life in time"; empty
// if nothing did. The step is that of the timeline's event; without one it stays unnamed.
std::string FailureText(const RunRecord& record, const CpuFinal& cpu, WhichFailure which);

// Process exit status of a run that ended so. Output that could not be written makes a complete one
// fail; a payload's own status stays.
int ExitStatus(const RunRecord& record);

}  // namespace sipi
