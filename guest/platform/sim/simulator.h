// The simulator's public header: what the VMM sees of it. One Simulator is one machine: virtual
// time, simulated CPUs that run guest/kernel, and the memory that they share. Nothing here depends
// on the host: the same Options give the same records, byte for byte.
//
// Memory is as on KVM, with the host address base() in the place of guest-physical address 0; the
// addresses in BootParams are moved by that much when the machine is made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apic/regs/types.h"
#include "guest/abi/boot_params.h"
#include "guest/abi/trace.h"
#include "guest/platform/sim/chaos.h"
#include "guest/platform/sim/choices.h"
#include "guest/platform/sim/costs.h"

namespace sipi::sim {

struct CpuPlace {
  ApicId apic_id;
  std::optional<ApicId> shown_apic_id;  // what CPUID shows, where the firmware lies
  uint32_t package = 0;
  int64_t tsc_offset_ticks = 0;  // this CPU's TSC - the machine's
  uint64_t held_ns = 0;          // it takes no INIT or SIPI before that time, but keeps it
};

// Other guests want the cores too: each CPU's is taken away again and again, for a pulse.
struct Steal {
  uint64_t period_ns =
      0;                // from one pulse's end to the next one's begin: half to one and a half of
                        // it; 0: never
  uint64_t min_ns = 0;  // how long a pulse lasts
  uint64_t max_ns = 0;
};

struct Options {
  std::vector<CpuPlace> cpus;  // CPU 0 is the boot CPU
  uint64_t seed = 1;
  uint64_t time_limit_ns = 3'600'000'000'000;  // of virtual time
  Costs costs;
  Charges charges;
  uint32_t tsc_khz = 2'000'000;
  bool has_tsc_deadline = true;
  Steal steal;
  uint32_t host_cores = 0;  // 0: each CPU is one of its own; else so many for all of them
  Chaos chaos;
  std::vector<uint16_t> choices;  // with Schedule::kChosen; 0 is taken where they end
  // Trace records that are kept beyond the guest's rings, of all CPUs together.
  uint64_t spare_records = 0;
  uint64_t memory_bytes = 0;
  std::vector<std::byte> boot_params;  // abi::BootParams blob, for abi::kParamsGpa
  std::function<void(const char* text, size_t bytes)> serial;  // the guest's output; may be null
  std::function<bool()> stop;  // asked now and then: shall the run end; may be null
  // Asked once, when the guest comes to abi::kMarkSettle and exploration's faults are about to end:
  // what is wrong with the run so far; empty: nothing. May be null.
  std::function<std::string()> before_settling;
};

enum class EndKind : uint8_t {
  kGuestExit,  // the guest wrote `code` to its exit port
  kFault,      // a CPU cannot go on; `text` says why
  kAllHalted,  // every CPU waits and nothing is to come
  kTimeLimit,
  kStopped,    // by Options::stop
  kViolation,  // exploration: something happened that must never happen; `text` says what
  kHostError   // no memory for a stack; `text` names limit and remedy
};

struct End {
  EndKind kind = EndKind::kAllHalted;
  CpuNumber cpu;
  uint32_t code = 0;
  std::string text;
};

// An event that is not the guest's own: what the VMM writes down on KVM. Ticks of the machine's
// TSC.
struct HostRecord {
  int32_t cpu = -1;  // -1: the machine's own track
  abi::TraceRecord record;
};

struct Stats {
  uint64_t events = 0;    // taken from the queue
  uint64_t switches = 0;  // to a CPU's fiber
  uint64_t line_transfers = 0;
  uint64_t line_wait_ns = 0;  // spent queueing for lines
  uint64_t trampoline_waits = 0;
  uint64_t trampoline_wait_ns = 0;
  uint64_t preemptions = 0;
  uint64_t yields = 0;
  uint64_t steals = 0;  // pulses that a CPU felt
  uint64_t stolen_ns = 0;
  uint64_t inits_taken = 0;
  uint64_t startups_taken = 0;
  uint64_t inits_sent = 0;
  uint64_t sipis_sent = 0;
  uint64_t sipis_ignored = 0;
  uint64_t startup_dropped = 0;
  uint64_t ipis = 0;
  uint64_t undeliverable = 0;
  uint64_t interrupts = 0;
  uint64_t timer_interrupts = 0;
  uint64_t halts = 0;
  uint64_t imposed_sleeps = 0;
  uint64_t imposed_ns = 0;
};

class Machine;

class Simulator {
 public:
  // Null, with `error` naming limit and remedy, if the host has no address space for the machine.
  static std::unique_ptr<Simulator> Create(Options options, std::string* error);
  ~Simulator();
  // Another machine in the place of this one, in the same memory if that is large enough: a
  // fraction of the cost of a new one. False, with `error`, as Create.
  bool Reset(Options options, std::string* error);
  Simulator(const Simulator&) = delete;
  Simulator& operator=(const Simulator&) = delete;

  // Runs the machine to its end. Once; on any thread.
  End Run();

  // --- After Run.
  std::byte* base() const;
  std::span<const HostRecord> host_records() const;  // in the order in which they happened
  // What this CPU has traced after its ring was full, in order; lost is what came after that.
  std::span<const abi::TraceRecord> spare_records(CpuNumber cpu) const;
  const Stats& stats() const;
  // With Schedule::kChosen: where the run could have gone another way, in order.
  std::span<const ChoicePoint> choice_points() const;
  uint64_t now_ns() const;  // virtual time at the end
  // A fault that a CPU may well be lost by was injected into it. Once the faults have ended
  // (abi::kMarkSettle): it hangs, and nobody can help it.
  bool Harmed(CpuNumber cpu) const;
  std::string Doing(CpuNumber cpu) const;  // "halted, IF=1", "waiting for SIPI" ...

 private:
  explicit Simulator(std::unique_ptr<Machine> machine);
  std::unique_ptr<Machine> machine_;
};

}  // namespace sipi::sim
