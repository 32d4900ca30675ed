// What a scenario beyond bring-up is asked to do, and the counters that it leaves. Times are not in
// here: they are computed from the timeline. Freestanding.
#pragma once

#include <cstdint>

namespace sipi::abi {

// CONFIG_PREEMPT_*: where a running thread can lose its CPU to another.
enum class Preemption : uint8_t {
  kNone = 0,       // where it gives it up itself (Schedule, CondResched)
  kVoluntary = 1,  // and at MightResched
  kFull = 2,       // and wherever preemption is enabled
  kLazy = 3,       // as kFull for urgent threads; ordinary ones wait for the tick
};

// Which RCU readers there are: preemptible ones count themselves (CONFIG_PREEMPT_RCU).
enum class RcuFlavour : uint8_t { kNonPreemptible = 0, kPreemptible = 1 };

// Which steps of the hotplug table wait for grace periods (reference: one CPU down 2, up by sysfs 2
// on x86; pseries pays more in its cpuidle driver's online and dead callbacks).
enum class HotplugSteps : uint8_t { kX86 = 0, kPseries = 1 };

// How `smt` switches; what the SMT series' cover letter weighs.
enum class SmtApproach : uint8_t {
  kNone = 0,          // normal grace periods
  kExpedite = 1,      // rcu_expedite_gp() around the whole switch (the series)
  kPerCpu = 2,        // rcu_expedite_gp() around each CPU's operation
  kHotplugCalls = 3,  // only the hotplug path's own calls are expedited ones
  kWriteLock = 4,     // cpus_write_lock() once for the whole switch
  kRcuSync = 5,       // rcu_sync_enter()/exit() around the whole switch
  kWakeFromGp = 6,    // normal grace periods that wake their waiters directly
};
inline constexpr uint32_t kSmtApproaches = 7;

// When a call_rcu worker binds itself to its CPU.
enum class WorkerPinning : uint8_t { kLazy = 0, kAtStart = 1, kAtFirstWork = 2 };

struct KernelKnobs {
  uint32_t hz = 250;  // jiffies per second
  Preemption preemption = Preemption::kFull;
  RcuFlavour rcu_flavour = RcuFlavour::kPreemptible;
  HotplugSteps hotplug_steps = HotplugSteps::kX86;
  uint8_t services = 0;            // 1: scheduler, RCU and hotplug threads run
  uint8_t boot_grace_periods = 0;  // 1: bring-up takes cpus_write_lock for each CPU, as Linux does
  uint8_t boot_expedited = 1;      // 1: rcu_expedited_nesting starts at 1 until the end of boot
  uint8_t rcu_expedited = 0;       // sysfs rcu_expedited
  uint8_t rcu_normal = 0;          // sysfs rcu_normal
  uint8_t rcu_normal_wake_from_gp = 0;
  uint8_t rcu_exp_parallel = 1;  // expedited selection by one worker per leaf
  WorkerPinning worker_pinning = WorkerPinning::kLazy;
  uint8_t trace_threads = 0;      // 1: every switch and migration is traced; fills the rings
  uint16_t rcu_fanout = 64;       // children of an inner rcu_node
  uint16_t rcu_fanout_leaf = 16;  // CPUs of a leaf
  uint32_t rcu_stall_ms = 21000;
  uint32_t jiffies_till_first_fqs = ~0u;  // ~0: by HZ and CPUs, as Linux
  uint32_t jiffies_till_next_fqs = ~0u;
};

struct ScenarioKnobs {
  uint64_t seed = 1;
  uint32_t duration_ms = 0;     // torture: how long; others: 0
  uint32_t rounds = 1;          // smt, hotplug: how often
  uint32_t approaches = 0;      // smt: bit set of SmtApproach
  uint32_t smt_threads = 1;     // smt: threads per core that stay
  uint32_t writers = 0;         // rcu scale, callrcu; torture: fake ones; 0: the default, below
  uint32_t readers = 0;         // rcu scale; ref, torture: 0: the default, below
  uint32_t measurements = 100;  // rcu scale: of each writer at least; callrcu: callbacks
  uint32_t hotplug_cpu = 0;     // hotplug: the CPU that goes off and on; 0: all in turn
  uint32_t queue_ms = 0;        // callrcu: how long updaters queue as fast as they can; 0: no bound
  uint8_t expedited = 0;        // rcu scale: gp_exp
  uint8_t async = 0;            // rcu scale: gp_async
  uint8_t onoff = 1;            // torture: CPUs go off and on at random
  uint8_t pad = 0;
  uint32_t kernel_busy = 0;  // smt: CPUs that a kernel thread keeps busy, see below
};

// How many threads a scenario makes where it was asked for none: what the guest does, and what flag
// checks put into the knobs, so that reports name the number.
constexpr uint32_t WritersOf(uint32_t asked, uint32_t cpus) { return asked != 0 ? asked : cpus; }
// refscale: half of the CPUs and a quarter of them.
constexpr uint32_t RefReaders(uint32_t asked, uint32_t cpus) {
  if (asked != 0) return asked;
  return cpus > 1 ? cpus / 2 + cpus / 4 : 1;
}
// rcutorture: nreaders, one less than there are CPUs; nfakewriters.
constexpr uint32_t TortureReaders(uint32_t asked, uint32_t cpus) {
  if (asked != 0) return asked;
  return cpus > 1 ? cpus - 1 : 1;
}
constexpr uint32_t TortureFakeWriters(uint32_t asked) { return asked != 0 ? asked : 4; }

// rcuscale's gp_async_max: callbacks of one writer that may be in flight.
inline constexpr uint32_t kScaleAsyncMax = 1000;

// What each scenario leaves for the VMM's reports, in events and counters:
//   smt      Each round takes each approach in the order of its number: kSmtBegin .. kSmtEnd to
//            smt_threads, then kSmtBegin .. kSmtEnd back to all threads. One switch at a time.
//            Meanwhile a thread runs on each of the first `kernel_busy` primary threads but the
//            boot CPU, and never blocks: it offers its CPU by cond_resched() alone.
//   hotplug  kHotplugBegin .. kHotplugEnd of each operation, off then on.
//   scale    One writer on each of the first `writers` CPUs, bound. kScaleBegin on its CPU once all
//            have started; each measurement kSyncBegin .. kSyncEnd there (async: around the call,
//            and the rcu_barrier() before it where kScaleAsyncMax callbacks are in flight);
//            kScaleEnd once every writer has `measurements` of them, and async after all callbacks
//            of the writer's CPU have run. Nobody else calls Synchronize on these CPUs meanwhile.
//   ref      kRefPoint once a round.
//   callrcu  kScaleBegin before the first callback is queued, kScaleEnd after all have run, with
//            how many its updater had queued by then;
//            callbacks_queued, callbacks_run; kWorkerPinned, kWorkerRanAway.
//   torture  TortureCounters: all callbacks have run when it ends (callbacks_run equals
//            callbacks_queued), every CPU is online again; kHotplugBegin .. kHotplugEnd as above.

// kScenario's values by which exploration's scenarios tell the simulator where its choices of a
// schedule begin and end (guest/platform/sim/chaos.h).
inline constexpr uint32_t kMarkChoices = 0xc0000001;
inline constexpr uint32_t kMarkNoChoices = 0xc0000002;
// With BootParams::settle: bring-up and scenario are over, and CPUs that failed get another try. It
// is here that exploration's faults end: from now on each must come online.
inline constexpr uint32_t kMarkSettle = 0xc0000003;

// How torture waits for a grace period: TortureCounters::updates_by_kind.
enum class TortureUpdate : uint32_t {
  kCall = 0,          // call_rcu
  kSync = 1,          // synchronize_rcu
  kSyncExp = 2,       // synchronize_rcu_expedited
  kCond = 3,          // get_state, then cond_synchronize_rcu
  kCondExp = 4,       // cond_synchronize_rcu_expedited
  kCondFull = 5,      // cond_synchronize_rcu_full
  kCondExpFull = 6,   // cond_synchronize_rcu_expedited_full
  kPoll = 7,          // start_poll, then poll until it has passed
  kPollExp = 8,       // start_poll_synchronize_rcu_expedited
  kPollFull = 9,      // start_poll_synchronize_rcu_full
  kPollExpFull = 10,  // start_poll_synchronize_rcu_expedited_full
  kBarrier = 11,      // rcu_barrier
};
inline constexpr uint32_t kTortureUpdates = 12;

// What torture checks: kTortureFailure's value.
enum class TortureCheck : uint32_t {
  kNone = 0,
  kShortGracePeriod = 1,  // a reader saw its element go through two grace periods
  kFreedElement = 2,      // a reader saw a freed element
  kOrder = 3,           // a section that a grace period had waited for was not done for all to see
  kCookieInReader = 4,  // a cookie from within a section was done before the section's end
  kCookieNotDone = 5,   // a grace period was waited for, and its cookie is not done
  kTooManyCookies = 6,  // more cookies than grace periods that can be under way
  kNesting = 7,         // rcu_expedite_gp: expedited at level 0, or not above it
  kBarrier = 8,         // a callback had not run when rcu_barrier returned
  kFlood = 9,           // no progress under a flood of callbacks
  kLostCallback = 10,   // queued, and not run at the end
  kGpHang = 11,         // no normal grace period has ended in the whole run
  kHotplug = 12,        // a CPU failed to go or to come
  kExpGpHang = 13,      // no expedited one, and they are not forbidden
};
inline constexpr uint32_t kTortureChecks = 14;

// Counters that `rcu torture` and `rcu callrcu` leave. The guest owns them; read after the end.
struct TortureCounters {
  uint64_t pipe[11];   // Reader Pipe: how many grace periods a reader saw its element go through
  uint64_t batch[11];  // Reader Batch
  uint64_t freed[11];  // Free-Block Circulation
  uint64_t reads;      // the sum of pipe, and of batch; callrcu: 0
  uint64_t updates;    // the sum of updates_by_kind; callrcu: batches
  uint64_t updates_by_kind[16];    // by TortureUpdate
  uint64_t failures;               // of every kind; 0: SUCCESS
  uint64_t failures_by_check[16];  // by TortureCheck
  uint64_t order_checks;           // memory ordering through a grace period (mbchk)
  uint64_t order_failures;
  uint64_t cookie_checks;
  uint64_t cookie_failures;
  uint64_t nesting_failures;  // rcu_expedite_gp
  uint64_t barrier_tries;
  uint64_t barrier_failures;
  uint64_t flood_callbacks;
  uint64_t flood_failures;
  // A CPU that has failed is not tried again: tried less ok is how many have.
  uint64_t online_ok, online_tried, offline_ok, offline_tried;
  uint64_t callbacks_queued, callbacks_run;
  uint64_t gp_seq_begin, gp_seq_end;
  uint64_t exp_seq_begin, exp_seq_end;
};

}  // namespace sipi::abi
