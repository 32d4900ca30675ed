// The per-CPU trace rings: what the guest writes and the VMM reads, without an exit. Freestanding.
//
// A record is written by its own CPU only. The cursor in PerCpuHeader is advanced first (one xadd,
// so an interrupt on the same CPU takes its own record), and only then is the record filled; a
// cursor beyond the end therefore counts exactly the records that did not fit: lost = (cursor -
// end) / sizeof(TraceRecord). Nothing wraps.
#pragma once

#include <cstdint>

namespace sipi::abi {

// Append only; the number goes into files and rings. `target` is a CPU number, `value` as said.
enum class TraceEvent : uint16_t {
  kNone = 0,
  // Guest, any CPU.
  kBootEntry = 1,         // boot CPU: first guest instruction
  kFirstInstruction = 2,  // AP: first instruction of the trampoline
  kLongMode = 3,          // own stack, own per-CPU area, 64-bit mode
  kAlive = 4,             // handshake: alive
  kReleased = 5,          // AP has seen should-online
  kCpuhpEnter = 6,  // target = CPU that moves, value = CpuhpState entered; it leaves it at its next
                    // kCpuhpEnter
  kOnline = 7,      // target = CPU; its last ONLINE step is done
  kSmpbootBegin = 8,      // control CPU: "Bringing up secondary CPUs"
  kSmpbootEnd = 9,        // control CPU: value = CPUs online
  kPassBegin = 10,        // value = index of the pass
  kPassEnd = 11,          // value = index of the pass
  kKickBegin = 12,        // target = CPU to be kicked (kAllTargets for a broadcast)
  kKickEnd = 13,          // likewise
  kIcrWrite = 14,         // value = ICR bits 31:0, target = destination CPU or kAllTargets
  kWaitAliveBegin = 15,   // control CPU, target
  kWaitAliveEnd = 16,     // control CPU, target
  kRelease = 17,          // control CPU lets target go (should-online)
  kCalibrateBegin = 18,   // timer and delay calibration starts
  kCalibrateEnd = 19,     // value = TSC kHz
  kCalibrateReused = 20,  // value = TSC kHz taken over
  kCalibrateRejected =
      21,               // a bad sample; value = width of its brackets in us (0: too short a window)
  kTimeout = 22,        // target did not arrive within the bound, value = SyncState it was in
  kCancelled = 23,      // an AP saw that it had been given up, and parks
  kStepFailed = 24,     // target, value = CpuhpState
  kParked = 25,         // AP parked for good
  kWake = 26,           // a halted wait ended by an interrupt
  kVeto = 27,           // parallel bring-up refused, value = Veto
  kFault = 28,          // value = exception vector
  kCacheSetup = 29,     // cache/MTRR set-up done on this CPU
  kTscCheckBegin = 30,  // target = the CPU checked
  kTscCheckEnd = 31,    // target, value = largest backward step seen in ticks
  kScenario = 32,       // value is the scenario's own
  kTopology = 33,       // topology masks updated
  kUnknownApicId = 34,  // an AP whose ID is in no table; value = ID
  kRetry = 35,          // control CPU: target is brought up once more, value = GuestError before
  // Scheduler, hotplug, RCU. `target` is the CPU concerned, `value` as said.
  kThread = 67,           // this CPU runs another thread: value = its number
  kHotplugBegin = 36,     // control CPU: target goes; value = CpuhpState that it is to reach
  kHotplugEnd = 37,       // target, value = Error
  kCpusWriteLock = 38,    // cpus_write_lock() is asked for
  kCpusWriteLocked = 39,  // and held
  kCpusWriteUnlock = 40,
  kDead = 41,         // control CPU: target is dead, nothing of it runs any more
  kSmtBegin = 42,     // target = threads per core to stay, value = SmtApproach
  kSmtEnd = 43,       // target = threads per core, value = CPUs that failed
  kGpBegin = 44,      // GP kthread: value = gp_seq (low 32 bits)
  kGpInit = 45,       // every leaf is set up
  kGpFqs = 46,        // a scan; value = CPUs that were found quiescent by it
  kGpEnd = 47,        // value = gp_seq
  kSyncBegin = 48,    // synchronize_rcu() or its like; value = GracePeriodKind
  kSyncEnd = 49,      // value = GracePeriodKind that it was served by
  kExpBegin = 50,     // expedited grace period: value = its sequence
  kExpSelected = 51,  // every leaf has been asked
  kExpIpi = 52,       // target gets an IPI
  kExpEnd = 53,       // value = its sequence
  kBarrierBegin = 54,
  kBarrierEnd = 55,
  kCallbacks = 56,          // a batch of callbacks has run; value = how many
  kCallbacksMigrated = 57,  // target = the dead CPU, value = how many
  kRcuStall = 58,           // target holds the grace period up; value = ms
  kExpediteNesting = 59,    // value = rcu_expedited_nesting after the call; ~0: unbalanced
  kScaleBegin = 60,         // rcu scale: this writer's measurements count from here
  kScaleEnd = 61,
  kWorkerPinned = 62,    // target = CPU; value = microseconds since the worker's start
  kWorkerRanAway = 63,   // target = CPU whose worker ran on this one
  kMigrated = 64,        // thread `value` goes to CPU target
  kRefPoint = 65,        // rcu ref: value = picoseconds a reader took on average
  kTortureFailure = 66,  // value = which check
  // Host.
  kHostFirst = 128,
  kVmCreated = 129,
  kVcpuCreated = 130,    // cpu
  kThreadStarted = 131,  // cpu
  kFirstRun = 132,       // cpu: first KVM_RUN that executes guest code
  kInitDelivered = 133,  // cpu: INIT taken by the vCPU
  kSipiDelivered = 134,  // cpu: SIPI taken, value = vector
  kSipiIgnored = 135,    // cpu: SIPI to a CPU not in wait-for-SIPI, value = vector
  kInitDropped = 136,    // fault injection, cpu
  kSipiDropped = 137,    // fault injection, cpu, value = index
  kImposedBegin = 138,   // cpu: the profile's latency starts, value = Charge kind
  kImposedEnd = 139,     // cpu
  kIpiSent = 140,        // cpu = sender, target, value = ICR bits 31:0
  kReady = 141,          // the guest told that its APs may be kicked (host-driven)
  kRunEnd = 142,
  kGuestLoaded = 143,
  kStolenBegin = 144,  // cpu: another guest has its core
  kStolenEnd = 145,    // cpu
};

// How a waiter for a grace period was served.
enum class GracePeriodKind : uint32_t {
  kNormal = 0,
  kExpedited = 1,
  kNone = 2,  // none was needed: one CPU, or it had passed already
};

inline constexpr uint16_t kAllTargets = 0xffff;

struct TraceRecord {
  uint64_t tsc;
  TraceEvent event;
  uint16_t target;
  uint32_t value;
};
static_assert(sizeof(TraceRecord) == 16);

// Event and target as the one little-endian word that they are in a record.
constexpr uint32_t PackTrace(TraceEvent event, uint16_t target) {
  return static_cast<uint32_t>(event) | uint32_t{target} << 16;
}

constexpr const char* Name(TraceEvent event) {
  switch (event) {
    case TraceEvent::kNone:
      return "none";
    case TraceEvent::kBootEntry:
      return "boot-entry";
    case TraceEvent::kFirstInstruction:
      return "first-instruction";
    case TraceEvent::kLongMode:
      return "long-mode";
    case TraceEvent::kAlive:
      return "alive";
    case TraceEvent::kReleased:
      return "released";
    case TraceEvent::kCpuhpEnter:
      return "cpuhp-enter";
    case TraceEvent::kOnline:
      return "online";
    case TraceEvent::kSmpbootBegin:
      return "smpboot-begin";
    case TraceEvent::kSmpbootEnd:
      return "smpboot-end";
    case TraceEvent::kPassBegin:
      return "pass-begin";
    case TraceEvent::kPassEnd:
      return "pass-end";
    case TraceEvent::kKickBegin:
      return "kick-begin";
    case TraceEvent::kKickEnd:
      return "kick-end";
    case TraceEvent::kIcrWrite:
      return "icr-write";
    case TraceEvent::kWaitAliveBegin:
      return "wait-alive-begin";
    case TraceEvent::kWaitAliveEnd:
      return "wait-alive-end";
    case TraceEvent::kRelease:
      return "release";
    case TraceEvent::kCalibrateBegin:
      return "calibrate-begin";
    case TraceEvent::kCalibrateEnd:
      return "calibrate-end";
    case TraceEvent::kCalibrateReused:
      return "calibrate-reused";
    case TraceEvent::kCalibrateRejected:
      return "calibrate-rejected";
    case TraceEvent::kTimeout:
      return "timeout";
    case TraceEvent::kCancelled:
      return "cancelled";
    case TraceEvent::kStepFailed:
      return "step-failed";
    case TraceEvent::kParked:
      return "parked";
    case TraceEvent::kWake:
      return "wake";
    case TraceEvent::kVeto:
      return "veto";
    case TraceEvent::kFault:
      return "fault";
    case TraceEvent::kCacheSetup:
      return "cache-setup";
    case TraceEvent::kTscCheckBegin:
      return "tsc-check-begin";
    case TraceEvent::kTscCheckEnd:
      return "tsc-check-end";
    case TraceEvent::kScenario:
      return "scenario";
    case TraceEvent::kTopology:
      return "topology";
    case TraceEvent::kUnknownApicId:
      return "unknown-apic-id";
    case TraceEvent::kRetry:
      return "retry";
    case TraceEvent::kThread:
      return "thread";
    case TraceEvent::kHotplugBegin:
      return "hotplug-begin";
    case TraceEvent::kHotplugEnd:
      return "hotplug-end";
    case TraceEvent::kCpusWriteLock:
      return "cpus-write-lock";
    case TraceEvent::kCpusWriteLocked:
      return "cpus-write-locked";
    case TraceEvent::kCpusWriteUnlock:
      return "cpus-write-unlock";
    case TraceEvent::kDead:
      return "dead";
    case TraceEvent::kSmtBegin:
      return "smt-begin";
    case TraceEvent::kSmtEnd:
      return "smt-end";
    case TraceEvent::kGpBegin:
      return "gp-begin";
    case TraceEvent::kGpInit:
      return "gp-init";
    case TraceEvent::kGpFqs:
      return "gp-fqs";
    case TraceEvent::kGpEnd:
      return "gp-end";
    case TraceEvent::kSyncBegin:
      return "sync-begin";
    case TraceEvent::kSyncEnd:
      return "sync-end";
    case TraceEvent::kExpBegin:
      return "exp-begin";
    case TraceEvent::kExpSelected:
      return "exp-selected";
    case TraceEvent::kExpIpi:
      return "exp-ipi";
    case TraceEvent::kExpEnd:
      return "exp-end";
    case TraceEvent::kBarrierBegin:
      return "barrier-begin";
    case TraceEvent::kBarrierEnd:
      return "barrier-end";
    case TraceEvent::kCallbacks:
      return "callbacks";
    case TraceEvent::kCallbacksMigrated:
      return "callbacks-migrated";
    case TraceEvent::kRcuStall:
      return "rcu-stall";
    case TraceEvent::kExpediteNesting:
      return "expedite-nesting";
    case TraceEvent::kScaleBegin:
      return "scale-begin";
    case TraceEvent::kScaleEnd:
      return "scale-end";
    case TraceEvent::kWorkerPinned:
      return "worker-pinned";
    case TraceEvent::kWorkerRanAway:
      return "worker-ran-away";
    case TraceEvent::kMigrated:
      return "migrated";
    case TraceEvent::kRefPoint:
      return "ref-point";
    case TraceEvent::kTortureFailure:
      return "torture-failure";
    case TraceEvent::kHostFirst:
      return "host-first";
    case TraceEvent::kVmCreated:
      return "vm-created";
    case TraceEvent::kVcpuCreated:
      return "vcpu-created";
    case TraceEvent::kThreadStarted:
      return "thread-started";
    case TraceEvent::kFirstRun:
      return "first-run";
    case TraceEvent::kInitDelivered:
      return "init-delivered";
    case TraceEvent::kSipiDelivered:
      return "sipi-delivered";
    case TraceEvent::kSipiIgnored:
      return "sipi-ignored";
    case TraceEvent::kInitDropped:
      return "init-dropped";
    case TraceEvent::kSipiDropped:
      return "sipi-dropped";
    case TraceEvent::kImposedBegin:
      return "imposed-begin";
    case TraceEvent::kImposedEnd:
      return "imposed-end";
    case TraceEvent::kIpiSent:
      return "ipi-sent";
    case TraceEvent::kReady:
      return "ready";
    case TraceEvent::kRunEnd:
      return "run-end";
    case TraceEvent::kGuestLoaded:
      return "guest-loaded";
    case TraceEvent::kStolenBegin:
      return "stolen-begin";
    case TraceEvent::kStolenEnd:
      return "stolen-end";
  }
  return "?";
}

}  // namespace sipi::abi
