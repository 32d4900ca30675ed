// What the VMM hands to guest.elf: one position-independent blob, passed as PVH module 0 (so that
// another VMM can pass it as its initrd). All offsets count from the blob's start. Freestanding;
// versioned; little endian.
#pragma once

#include <cstdint>

#include "guest/abi/cpuhp_state.h"
#include "guest/abi/handshake.h"
#include "guest/abi/scenario.h"
#include "guest/sequence/driver.h"
#include "guest/sequence/strategy.h"

namespace sipi::abi {

inline constexpr uint32_t kBootParamsMagic = 0x49504953;  // "SIPI"
inline constexpr uint32_t kAbiVersion = 2;

enum class ApicMode : uint8_t { kXApic = 0, kX2Apic = 1 };
enum class WaitMode : uint8_t { kHalt = 0, kSpin = 1 };
enum class ApIdSource : uint8_t { kApic = 0, kCpuidB = 1, kCpuid1 = 2 };
enum class CacheSetup : uint8_t { kEach = 0, kRendezvous = 1 };
enum class TopologyUpdate : uint8_t { kLocked = 0, kLockless = 1 };
enum class ReuseScope : uint8_t { kCpu = 0, kCore = 1, kPackage = 2, kMachine = 3 };
enum class Driver : uint8_t { kGuest = 0, kHost = 1 };

// Why parallel bring-up falls back to serial (Linux: smp_prepare_cpus/native_smp_prepare_cpus,
// cpuhp.parallel).
enum class Veto : uint8_t { kNone = 0, kVendor = 1, kNoLeafB = 2, kEncrypted = 3 };

enum class Scenario : uint8_t {
  kSmpboot = 0,  // bring all CPUs up, report, end
  kPrint = 1,  // then every CPU of fault.cpu_count prints to the serial port (value = bytes in all)
  kIpiAll = 2,  // then the boot CPU sends one IPI to each online CPU and waits for each answer
  // Those from here on need KernelKnobs::services.
  kHotplug = 8,    // CPUs go off and on
  kSmt = 9,        // SMT off and on by each approach
  kRcuScale = 10,  // rcuscale: writers that time grace periods
  kRefScale = 11,  // refscale: what readers cost
  kCallRcu = 12,   // call_rcu workers
  kTorture = 13,   // rcutorture
  kThreads = 16,   // the scheduler against itself; tests only
  kCases = 17,     // a case of the kernel's, scenario_value says which; tests only
  // `sipi explore --scenario=rcu`, in the simulator.
  kRcuExplore = 14,  // readers, updaters, hotplug; short and strict
  kExpHotplug = 15,  // one expedited grace period while a CPU goes off and on; scenario_value says
                     // from which of that CPU's states on
};

// What goes wrong on purpose, and on which CPU. Those named host are injected by the VMM, the guest
// ignores them.
enum class Fault : uint8_t {
  kNone = 0,
  kNoStart = 1,      // host: this AP never starts
  kLostInit = 2,     // host: its INIT is lost
  kLostSipi1 = 3,    // host: its first SIPI is lost
  kLostSipi2 = 4,    // host: its second SIPI is lost
  kLostSipis = 5,    // host: both
  kTripleFault = 6,  // guest: empty IDT, then an exception
  kHang = 7,         // guest: endless loop with interrupts off
  kHaltAll = 8,      // guest: every CPU ends in CLI; HLT
  kBadInsn = 9,  // guest: an instruction that no x86 CPU has (ud2 with no IDT would triple fault):
                 // invalid opcode
  kException = 10,  // guest: divide error, reported by the IDT
  kLate = 11,      // host: the AP is held for value ms after its first instruction would have come,
                   // the first time that it starts
  kFailStep = 12,  // guest: the step whose CpuhpState is value fails on this CPU
  kWildMmio = 13,  // guest: reads and writes an address where nothing is
  kWildIcr = 14,   // guest: writes ICR values that are reserved or hit nobody
  kTscAhead = 15,  // host: this CPU's TSC is value ticks ahead of all others'; in the simulator
};

struct FaultSpec {
  Fault kind = Fault::kNone;
  uint8_t pad[3] = {};
  uint32_t cpu = 0;
  uint64_t value = 0;
};

struct CpuEntry {
  uint32_t apic_id;
  uint16_t package;
  uint16_t core;  // number of the core in the machine
  uint16_t node;
  uint8_t thread;      // in its core; 0 is the primary thread, which the boot CPU is of its own
  uint8_t cpuid_lies;  // firmware lies: CPUID shows another ID than the APIC (the VMM arranges it)
};
static_assert(sizeof(CpuEntry) == 12);

// Open addressing, linear probing: slot = (apic_id * kApicHashMultiplier) >> (32 - apic_hash_bits).
struct ApicHashEntry {
  uint32_t apic_id;
  uint32_t cpu;  // kNoCpu where empty
};
inline constexpr uint32_t kApicHashMultiplier = 2654435769u;
inline constexpr uint32_t kNoCpu = 0xffffffff;

struct Knobs {
  sequence::KickTiming kick;
  WaitMode ap_wait = WaitMode::kHalt;
  ApIdSource ap_id_source = ApIdSource::kApic;
  uint8_t trampoline_lock = 1;
  CacheSetup cache_setup = CacheSetup::kEach;
  TopologyUpdate topology_update = TopologyUpdate::kLocked;
  uint8_t tsc_check = 0;
  ReuseScope reuse_scope = ReuseScope::kMachine;
  Veto veto = Veto::kNone;  // forced by the user; the guest also looks for itself
  uint32_t handshake_timeout_ms = 10000;
  uint32_t calibration_us = 1000;  // window of one calibration sample
  uint32_t tsc_check_us = 2000;
  uint32_t wait_spin_us = 50;  // how long an AP's halting wait spins first
  uint32_t control_spin_us =
      1000;  // how long the control CPU's does (Linux: 1 ms, cpuhp_wait_for_sync_state)
};

struct BootParams {
  uint32_t magic = kBootParamsMagic;
  uint32_t version = kAbiVersion;
  uint32_t size_bytes = 0;  // of the whole blob
  uint32_t cpu_count = 0;   // entries of the CPU table; entry 0 is the boot CPU

  uint32_t cpu_table_offset = 0;  // CpuEntry[cpu_count]
  uint32_t order_offset =
      0;  // uint32_t[order_count]: CPUs to bring up, in this order, without CPU 0
  uint32_t order_count = 0;
  uint32_t apic_hash_offset = 0;  // ApicHashEntry[1 << apic_hash_bits]
  uint32_t apic_hash_bits = 0;

  uint32_t percpu_stride_bytes = 0;  // size of a per-CPU block: header, trace ring, stack
  uint32_t percpu_ring_records = 0;  // capacity of an AP's ring
  uint32_t boot_ring_records = 0;    // capacity of the boot CPU's ring
  uint64_t result_gpa = 0;           // ResultPage
  uint64_t slots_gpa = 0;            // CpuSlot[cpu_count]
  uint64_t percpu_gpa = 0;           // per-CPU blocks, cpu_count * percpu_stride_bytes
  uint64_t boot_ring_gpa = 0;

  uint32_t tsc_khz = 0;        // 0: unknown, calibrate against the PM timer
  uint16_t pm_timer_port = 0;  // 0: none; then tsc_khz must be given
  uint8_t apic_mode = 0;       // ApicMode
  uint8_t driver = 0;          // Driver
  uint8_t charge = 0;          // 1: Charge() writes to kChargePort
  uint8_t doorbell = 0;        // 1: ring Doorbell::kBeforeKick
  Scenario scenario = Scenario::kSmpboot;
  uint8_t retry = 0;   // 1: CPUs that failed are brought up once more
  uint8_t settle = 0;  // 1: and again after the scenario, behind kMarkSettle in the trace
  uint8_t pad1[3] = {};
  uint64_t scenario_value = 0;
  FaultSpec fault;
  Knobs knobs;
  sequence::Strategy strategy;
  KernelKnobs kernel;
  ScenarioKnobs scenario_knobs;
  uint64_t heap_gpa = 0;  // the kernel's memory (guest/kernel/alloc.h)
  uint64_t heap_bytes = 0;
  uint64_t torture_gpa = 0;  // TortureCounters
};
static_assert(sizeof(BootParams) % 8 == 0);

}  // namespace sipi::abi
