// The per-CPU trace rings: what the guest writes and the VMM reads, without an exit. Freestanding.
//
// A record is taken by its own CPU only. The cursor in PerCpuHeader is advanced first (one xadd, so
// an interrupt on the same CPU takes its own record), and only then is the record filled; a cursor
// beyond the end therefore counts exactly the records that did not fit: lost = (cursor - end) /
// sizeof(TraceRecord). Nothing wraps.
//
// Between the two its writer may be interrupted, or preempted and go on later, maybe on another
// CPU: it fills the record that it took. Until then the record is a hole before those that were
// taken after it; a run that ends meanwhile leaves the hole for good, at any place of the ring, and
// as many as there were writers under way. The word of event and target is written last, so that
// its being 0 (no event has 0) is what tells a record that was not finished from one that is wrong.
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
  kTscCheckEnd = 31,    // target, value = largest backward step seen in ticks, or kTscNotChecked
  kScenario = 32,       // value is the scenario's own
  kTopology = 33,       // topology masks updated
  kUnknownApicId = 34,  // an AP whose ID is in no table; value = ID
  kRetry = 35,          // control CPU: target is brought up once more, value = GuestError before
  // Scheduler, hotplug, RCU. `target` is the CPU concerned, `value` as said.
  kThread = 67,           // this CPU runs another thread: value = its number
  kHotplugAsked = 68,     // cpu_up(), cpu_down(): target is to reach value; the locks come first
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
  kGpStarved = 69,       // the grace-period kthread does not run: on CPU target; value = ms
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
// Value of kTscCheckEnd: the control CPU did not come, no check was made.
inline constexpr uint32_t kTscNotChecked = 0xffffffff;

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

struct TraceEventName {
  TraceEvent event;
  const char* name;
};
inline constexpr TraceEventName kTraceEventNames[] = {
    {TraceEvent::kNone, "none"},
    {TraceEvent::kBootEntry, "boot-entry"},
    {TraceEvent::kFirstInstruction, "first-instruction"},
    {TraceEvent::kLongMode, "long-mode"},
    {TraceEvent::kAlive, "alive"},
    {TraceEvent::kReleased, "released"},
    {TraceEvent::kCpuhpEnter, "cpuhp-enter"},
    {TraceEvent::kOnline, "online"},
    {TraceEvent::kSmpbootBegin, "smpboot-begin"},
    {TraceEvent::kSmpbootEnd, "smpboot-end"},
    {TraceEvent::kPassBegin, "pass-begin"},
    {TraceEvent::kPassEnd, "pass-end"},
    {TraceEvent::kKickBegin, "kick-begin"},
    {TraceEvent::kKickEnd, "kick-end"},
    {TraceEvent::kIcrWrite, "icr-write"},
    {TraceEvent::kWaitAliveBegin, "wait-alive-begin"},
    {TraceEvent::kWaitAliveEnd, "wait-alive-end"},
    {TraceEvent::kRelease, "release"},
    {TraceEvent::kCalibrateBegin, "calibrate-begin"},
    {TraceEvent::kCalibrateEnd, "calibrate-end"},
    {TraceEvent::kCalibrateReused, "calibrate-reused"},
    {TraceEvent::kCalibrateRejected, "calibrate-rejected"},
    {TraceEvent::kTimeout, "timeout"},
    {TraceEvent::kCancelled, "cancelled"},
    {TraceEvent::kStepFailed, "step-failed"},
    {TraceEvent::kParked, "parked"},
    {TraceEvent::kWake, "wake"},
    {TraceEvent::kVeto, "veto"},
    {TraceEvent::kFault, "fault"},
    {TraceEvent::kCacheSetup, "cache-setup"},
    {TraceEvent::kTscCheckBegin, "tsc-check-begin"},
    {TraceEvent::kTscCheckEnd, "tsc-check-end"},
    {TraceEvent::kScenario, "scenario"},
    {TraceEvent::kTopology, "topology"},
    {TraceEvent::kUnknownApicId, "unknown-apic-id"},
    {TraceEvent::kRetry, "retry"},
    {TraceEvent::kThread, "thread"},
    {TraceEvent::kHotplugAsked, "hotplug-asked"},
    {TraceEvent::kHotplugBegin, "hotplug-begin"},
    {TraceEvent::kHotplugEnd, "hotplug-end"},
    {TraceEvent::kCpusWriteLock, "cpus-write-lock"},
    {TraceEvent::kCpusWriteLocked, "cpus-write-locked"},
    {TraceEvent::kCpusWriteUnlock, "cpus-write-unlock"},
    {TraceEvent::kDead, "dead"},
    {TraceEvent::kSmtBegin, "smt-begin"},
    {TraceEvent::kSmtEnd, "smt-end"},
    {TraceEvent::kGpBegin, "gp-begin"},
    {TraceEvent::kGpInit, "gp-init"},
    {TraceEvent::kGpFqs, "gp-fqs"},
    {TraceEvent::kGpEnd, "gp-end"},
    {TraceEvent::kSyncBegin, "sync-begin"},
    {TraceEvent::kSyncEnd, "sync-end"},
    {TraceEvent::kExpBegin, "exp-begin"},
    {TraceEvent::kExpSelected, "exp-selected"},
    {TraceEvent::kExpIpi, "exp-ipi"},
    {TraceEvent::kExpEnd, "exp-end"},
    {TraceEvent::kBarrierBegin, "barrier-begin"},
    {TraceEvent::kBarrierEnd, "barrier-end"},
    {TraceEvent::kCallbacks, "callbacks"},
    {TraceEvent::kCallbacksMigrated, "callbacks-migrated"},
    {TraceEvent::kRcuStall, "rcu-stall"},
    {TraceEvent::kExpediteNesting, "expedite-nesting"},
    {TraceEvent::kScaleBegin, "scale-begin"},
    {TraceEvent::kScaleEnd, "scale-end"},
    {TraceEvent::kWorkerPinned, "worker-pinned"},
    {TraceEvent::kWorkerRanAway, "worker-ran-away"},
    {TraceEvent::kMigrated, "migrated"},
    {TraceEvent::kRefPoint, "ref-point"},
    {TraceEvent::kTortureFailure, "torture-failure"},
    {TraceEvent::kGpStarved, "gp-starved"},
    {TraceEvent::kHostFirst, "host-first"},
    {TraceEvent::kVmCreated, "vm-created"},
    {TraceEvent::kVcpuCreated, "vcpu-created"},
    {TraceEvent::kThreadStarted, "thread-started"},
    {TraceEvent::kFirstRun, "first-run"},
    {TraceEvent::kInitDelivered, "init-delivered"},
    {TraceEvent::kSipiDelivered, "sipi-delivered"},
    {TraceEvent::kSipiIgnored, "sipi-ignored"},
    {TraceEvent::kInitDropped, "init-dropped"},
    {TraceEvent::kSipiDropped, "sipi-dropped"},
    {TraceEvent::kImposedBegin, "imposed-begin"},
    {TraceEvent::kImposedEnd, "imposed-end"},
    {TraceEvent::kIpiSent, "ipi-sent"},
    {TraceEvent::kReady, "ready"},
    {TraceEvent::kRunEnd, "run-end"},
    {TraceEvent::kGuestLoaded, "guest-loaded"},
    {TraceEvent::kStolenBegin, "stolen-begin"},
    {TraceEvent::kStolenEnd, "stolen-end"},
};

// By number; "?" for one that no event has.
struct TraceEventNames {
  const char* by_number[256];
  constexpr TraceEventNames() : by_number() {
    for (const char*& name : by_number) name = "?";
    for (const TraceEventName& each : kTraceEventNames) {
      by_number[static_cast<uint16_t>(each.event)] = each.name;
    }
  }
};
inline constexpr TraceEventNames kNamesByNumber;

constexpr const char* Name(TraceEvent event) {
  const auto number = static_cast<uint16_t>(event);
  return number < 256 ? kNamesByNumber.by_number[number] : "?";
}

}  // namespace sipi::abi
