// What the VMM may read of the guest's memory while it runs, and after: slots, headers, the result
// page. Freestanding.
#pragma once

#include <cstdint>

#include "guest/abi/trace.h"

namespace sipi::abi {

// Two cache lines per CPU (adjacent lines are fetched together). Words that two CPUs touch are only
// accessed atomically. The words of the last group belong to the core or package whose number is
// the slot's index.
struct alignas(128) CpuSlot {
  uint32_t sync_state;    // SyncState
  uint32_t cpuhp_state;   // CpuhpState last entered, by whoever executes the step
  uint32_t cpuhp_target;  // CpuhpState up to which the AP may go once it is let go
  uint32_t on_its_own;  // 1: the AP goes from alive to should-online itself (concurrent strategies)
  uint32_t sleeping;  // 1: this CPU halts in a wait and wants an IPI when what it waits for changes
  uint32_t apic_id;   // as in the CPU table
  uint32_t error;     // GuestError of its last failure
  uint32_t online;    // 1: in the online mask
  uint32_t inits_sent;  // by this CPU
  uint32_t startups_sent;
  uint32_t ipis_sent;
  uint32_t wakes;      // halted waits ended by an interrupt
  uint32_t tsc_khz;    // what this CPU's calibration gave, or took over
  uint32_t bus_khz;    // frequency of its local APIC timer
  uint32_t tree_rank;  // its rank in the wake-up tree
  uint32_t parked;     // 1: parked for good

  uint32_t core_calibrated_by;  // CPU number + 1 of the CPU whose calibration this core may reuse
  uint32_t package_calibrated_by;  // likewise, this package
  uint32_t core_cpus;              // CPUs of this core that are up
  uint32_t package_cpus;           // CPUs of this package that are up
  uint32_t prepare_state;   // CpuhpState of the control CPU's own progress with this CPU (PREPARE
                            // section)
  uint32_t call_requested;  // 1: a function call is to be done, and its IPI is on the way
  uint32_t tree_kick;  // wake-up tree: 0 nobody kicks this CPU yet, 1 one is about to, 2 kicked
  uint32_t spare[9];
};
static_assert(sizeof(CpuSlot) == 128);

// First bytes of a per-CPU block. The ring follows at ring_begin.
struct PerCpuHeader {
  uint64_t ring_cursor;  // gpa of the next record; may run past ring_end (see trace.h)
  uint64_t ring_end;
  uint64_t ring_begin;
  uint64_t self;  // gpa of this header
};
static_assert(sizeof(PerCpuHeader) == 32);

enum class GuestStatus : uint32_t {
  kNotStarted = 0,
  kRunning = 1,
  kDone = 2,   // the scenario ended; CPUs may still be missing (cpus_online)
  kPanic = 3,  // panic_* filled
  kFault = 4,  // fault_* filled
};

enum class GuestError : uint32_t {
  kNone = 0,
  kTimeoutAlive = 1,
  kTimeoutOnline = 2,
  kStepFailed = 3,
  kCancelled = 4,
  kInvalid = 5,      // hotplug was asked for something that no CPU, or this one, can do
  kNotBootable = 6,  // SMT control keeps this CPU off
  kTimeoutDead = 7,
};

// The trampoline's lock is told here: the word, and the CPU that took it last (kNoCpu: not known
// yet).
struct ResultPage {
  uint32_t magic;  // kBootParamsMagic once the guest runs
  uint32_t version;
  uint32_t status;  // GuestStatus
  uint32_t cpus_online;
  uint32_t veto;  // Veto that fell back to serial
  uint32_t trampoline_lock;
  uint32_t trampoline_holder;
  uint32_t boot_tsc_khz;
  uint32_t boot_bus_khz;
  uint32_t tsc_backward_ticks;  // largest backward step that a TSC check saw
  uint32_t panic_cpu;
  uint32_t panic_line;
  char panic_file[64];
  char panic_text[128];
  uint32_t fault_cpu;
  uint32_t fault_vector;
  uint64_t fault_error_code;
  uint64_t fault_rip;
  uint64_t fault_cr2;
  uint64_t fault_rsp;
  uint64_t ipi_answers;         // Scenario::kIpiAll
  uint32_t host_sequence_done;  // host-driven: the VMM has finished, and wakes CPU 0
  uint32_t unknown_apic_ids;  // APs that parked because their ID is in no table, or CPUID and APIC
                              // differ
  uint32_t unknown_apic_id;   // the last such ID
  uint32_t reuse_refused;     // 1: +reuse asked for, but the TSC is not invariant
};
static_assert(sizeof(ResultPage) <= 4096);

}  // namespace sipi::abi
