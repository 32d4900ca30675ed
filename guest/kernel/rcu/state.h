// RCU's own data: the tree of nodes, what each CPU has, and the machine's one State. Who may touch
// a field is said at each group; docs/rcu.md explains how they work together.
//
// Locks, outermost first: Node::ofl_lock, State::barrier_lock, then Node::lock from the leaf to the
// root (never two nodes of one level). All are taken with interrupts off, all are held for a few
// instructions, and nobody is woken while one is held, but for the kthread under an ofl_lock (a CPU
// that comes or goes may be the last that was waited for).
#pragma once

#include <span>

#include "guest/kernel/rcu/rcu.h"
#include "guest/kernel/rcu/segcblist.h"
#include "guest/kernel/rcu/tree.h"
#include "guest/kernel/sched/time.h"
#include "guest/kernel/sched/worker.h"

namespace sipi::rcu {

struct State;

inline constexpr uint32_t kExpWaitQueues = 4;  // by the grace period's number

// Work of a node, and of one expedited grace period.
struct Node;
struct NodeWork : Work {
  Node* node = nullptr;
};
struct StateWork : Work {
  State* state = nullptr;
};
struct ExpGpWork : Work {
  State* state = nullptr;
  uint64_t sequence = 0;  // that it is to end
};

// Callbacks (Linux's defaults): how many run in one go; from how many on a CPU stops being patient,
// and when it is again; and a go is at least this power of two's part of those that wait.
inline constexpr uint64_t kBatchLimit = 10;
inline constexpr uint64_t kBatchLimitMax = 10000;
inline constexpr uint64_t kHighMark = 10000;
inline constexpr uint64_t kLowMark = 100;
inline constexpr uint64_t kOverload = 2 * kHighMark;
inline constexpr uint32_t kBatchDivisor = 7;

// One node of the tree. A leaf's masks have a bit per CPU, an inner node's one per child.
struct alignas(64) Node {
  SpinLock lock;
  // Guarded by `lock` for writing; may be read without it.
  platform::Atomic<uint64_t> qsmask{0};         // the normal grace period still waits for these
  platform::Atomic<uint64_t> expmask{0};        // the expedited one does
  platform::Atomic<uint64_t> gp_seq{0};         // State::gp_seq as this node has seen it
  platform::Atomic<uint64_t> overload_mask{0};  // leaves: CPUs with far too many callbacks
  // Guarded by `lock`.
  uint64_t qsmaskinit = 0;       // qsmask at the beginning of the grace period that runs
  uint64_t qsmaskinitnext = 0;   // CPUs from `starting` to `dead`: of the next one
  uint64_t expmaskinit = 0;      // expmask at the beginning of an expedited one
  uint64_t expmaskinitnext = 0;  // CPUs that have ever been up: bits are never taken back
  uint64_t ffmask = 0;           // CPUs that are fully online
  uint64_t gp_seq_needed = 0;    // the furthest grace period that was asked for here
  // Readers that were switched out on this leaf's CPUs, the youngest first. Those from gp_tasks to
  // the end hold the normal grace period up, those from exp_tasks on the expedited one.
  Thread* blocked_first = nullptr;
  Thread* blocked_last = nullptr;
  Thread* gp_tasks = nullptr;
  Thread* exp_tasks = nullptr;
  // The last CPU of the leaf went while readers were blocked on it.
  bool wait_blkd_tasks = false;

  // Set once.
  State* state = nullptr;
  Node* parent = nullptr;
  uint64_t grpmask = 0;  // its bit in the parent's masks
  uint32_t grplo = 0;    // its CPUs: first and last
  uint32_t grphi = 0;
  uint8_t grpnum = 0;  // which bit
  uint8_t level = 0;   // 0: the root

  // Leaves: keeps the leaf's set of CPUs still while a grace period copies it.
  SpinLock ofl_lock;

  // --- Expedited grace periods (exp*.cc).
  alignas(64) SpinLock exp_lock;               // guards exp_seq_rq
  platform::Atomic<uint64_t> exp_seq_rq{0};    // the furthest sequence that was asked for here
  platform::Atomic<uint64_t> exp_poll_seq{0};  // likewise by a poller (exp_seq_poll_rq)
  SpinLock exp_poll_lock;                      // guards exp_poll_seq's stores but the work's own
  WaitQueue exp_wq[kExpWaitQueues];            // who waits for another's grace period
  Worker exp_worker;                           // a leaf's own, for the selection of its CPUs
  NodeWork exp_work;                           // that selection
  NodeWork exp_poll_work;                      // grace periods for pollers
  bool exp_need_flush = false;                 // exp_work was queued for this grace period

  bool IsLeaf() const;
  bool IsRoot() const { return parent == nullptr; }
  uint32_t CpuCount() const { return grphi - grplo + 1; }
};

// One CPU's part (rcu_data).
struct alignas(64) Data {
  // Set once.
  State* state = nullptr;
  Node* leaf = nullptr;
  uint64_t grpmask = 0;  // its bit in the leaf's masks
  CpuNumber cpu{0};

  // --- Of the CPU itself, with interrupts off; of the control CPU while this one is dead.
  uint64_t gp_seq = 0;         // the grace period that it has noticed
  uint64_t gp_seq_needed = 0;  // the furthest that it has asked for
  bool cpu_no_qs_norm = true;  // it has not been quiescent yet in the grace period gp_seq
  bool cpu_no_qs_exp = false;  // the expedited one waits for it, it is to report (exp.cc sets it)
  bool core_needs_qs = false;  // the grace period gp_seq waits for it
  bool in_core = false;        // RunCore runs
  bool idle = true;            // between IdleEnter and IdleExit, or not up
  uint32_t irq_nesting = 0;    // interrupts within interrupts
  uint64_t gp_start_jiffies = 0;  // when it noticed gp_seq
  SegCbList callbacks;
  uint64_t batch_limit = kBatchLimit;  // callbacks run in one go
  uint64_t length_last_check = 0;      // qlen_last_fqs_check
  uint64_t fqs_count_snap = 0;         // n_force_qs_snap

  // --- Words that other CPUs look at or set.
  // Odd: RCU watches this CPU. Even: it is idle, which is a quiescent state that lasts. Stepped at
  // every change by the CPU itself, with a locked operation: what comes before and after is
  // ordered.
  alignas(64) platform::Atomic<uint32_t> watching;
  platform::Atomic<uint32_t> urgent_qs{0};       // rcu_urgent_qs: the next chance will do
  platform::Atomic<uint32_t> need_heavy_qs{0};   // rcu_need_heavy_qs: step `watching` twice
  platform::Atomic<uint32_t> callback_count{0};  // callbacks.length(), for rcu_barrier
  platform::Atomic<uint32_t> up{0};              // between ReportCpuStarting and ReportCpuDead

  // --- Of the grace-period kthread.
  alignas(64) uint32_t watching_snap = 0;  // `watching` at the first scan of this grace period
  uint64_t urged_jiffies = 0;              // when it was last sent a reschedule IPI

  // --- Guarded by State::barrier_lock.
  Head barrier_head;
  uint64_t barrier_seq_snap = 0;  // the barrier that has seen to this CPU's callbacks

  // --- Expedited grace periods (exp*.cc). Of who selects the leaf's CPUs.
  uint32_t exp_watching_snap = 0;

  Data() : watching(0) {}
};

// What the grace-period kthread is at (RCU_GP_*).
enum class GpState : uint32_t {
  kIdle = 0,
  kWaitGps = 1,
  kDoneGps = 2,
  kOnOff = 3,
  kInit = 4,
  kWaitFqs = 5,
  kDoingFqs = 6,
  kCleanup = 7,
  kCleaned = 8,
};
// State::gp_flags.
inline constexpr uint32_t kGpFlagInit = 1;
inline constexpr uint32_t kGpFlagFqs = 2;

// RCU_SCHEDULER_*: what can happen while somebody waits for a grace period.
enum class SchedulerState : uint32_t {
  kInactive = 0,  // one CPU, one context: nothing, so all grace periods have passed already
  kInit = 1,      // threads run, RCU's own do not yet
  kRunning = 2,
};

// Waiters in the order in which they came.
struct SyncList {
  SyncWaiter* first = nullptr;
  SyncWaiter* last = nullptr;
};

struct State {
  Kernel* kernel = nullptr;
  bool preemptible = true;  // RcuFlavour

  // --- The tree, set once. nodes are in breadth-first order: level 0 is the root.
  std::span<Node> nodes;
  Node* level[kMaxLevels] = {};
  uint32_t level_nodes[kMaxLevels] = {};
  uint32_t levels = 0;
  uint32_t cpu_count = 0;
  std::span<Data> data;  // by CPU number; PerCpu::rcu points here from PrepareCpu on

  Node& root() const { return *level[0]; }
  std::span<Node> leaves() const { return {level[levels - 1], level_nodes[levels - 1]}; }

  // --- Waits, in jiffies, set once (Linux's defaults, or the knobs').
  uint32_t jiffies_till_first_fqs = 0;
  uint32_t jiffies_till_next_fqs = 0;
  uint32_t jiffies_to_sched_qs = 0;
  uint64_t stall_jiffies = 0;

  platform::Atomic<uint32_t> scheduler_state{0};  // SchedulerState

  // --- Normal grace periods. Written by the grace-period kthread.
  alignas(64) platform::Atomic<uint64_t> gp_seq{kInitialGpSeq};
  platform::Atomic<uint64_t> gp_start_jiffies{0};
  platform::Atomic<uint32_t> gp_state{0};   // GpState
  platform::Atomic<uint64_t> fqs_count{0};  // n_force_qs: scans ever
  Thread* gp_thread = nullptr;
  uint64_t gp_max_jiffies = 0;  // the longest yet
  // When somebody is to look who holds a grace period up, that runs or that was asked for
  // (jiffies_stall). Whoever moves it on looks.
  platform::Atomic<uint64_t> next_stall_jiffies{0};
  platform::Atomic<uint64_t> gp_activity_jiffies{0};  // when the kthread last did something
  platform::Atomic<uint64_t> gp_request_jiffies{0};   // when it was last asked to begin one
  uint64_t first_urge_jiffies = 0;                    // jiffies_resched
  uint64_t gp_awake_jiffies = 0;    // when the kthread last came back from a sleep
  uint32_t callback_overload = 0;   // some CPU has far too many callbacks
  uint64_t gp_seq_polled_snap = 0;  // gp_seq_polled at this grace period's beginning

  // Set by anybody, taken by the kthread.
  alignas(64) platform::Atomic<uint32_t> gp_flags{0};
  WaitQueue gp_wq;

  // --- Polled grace periods: counts those of either kind, for cookies (polled.cc).
  // Guarded by the root's lock for writing.
  platform::Atomic<uint64_t> gp_seq_polled{kInitialGpSeq};
  uint64_t gp_seq_polled_exp_snap = 0;

  // --- synchronize_rcu() whose waiters the grace-period kthread wakes (sync.cc).
  SpinLock sync_lock;
  // Guarded by sync_lock: who waits for the next grace period, for the one that runs, and who is
  // still to be woken after one.
  SyncList sync_next;
  SyncList sync_now;
  SyncList sync_done;
  platform::Atomic<uint32_t> sync_count{0};    // all of these
  platform::Atomic<uint32_t> sync_latched{0};  // too many: use callbacks until there are none
  platform::Atomic<uint32_t> normal_wake_from_gp{0};  // the knob
  Worker sync_worker;
  StateWork sync_work;

  // --- rcu_barrier() (barrier.cc).
  Mutex barrier_mutex;
  SpinLock barrier_lock;
  platform::Atomic<uint32_t> barrier_cpu_count{0};
  platform::Atomic<uint64_t> barrier_seq{kInitialBarrierSeq};
  Completion barrier_completion;

  // --- CPUs that have ever come up: expedited ones fold new ones in when this changes.
  platform::Atomic<uint32_t> ncpus{0};
  platform::Atomic<uint32_t> online_cpus{0};

  // --- Expedited grace periods (exp*.cc).
  alignas(64) platform::Atomic<uint64_t> expedited_sequence{kInitialExpSeq};
  Mutex exp_mutex;       // one at a time
  Mutex exp_wake_mutex;  // held while the last one's waiters are woken
  WaitQueue expedited_wq;
  uint32_t ncpus_snap = 0;  // ncpus, as the last one saw it
  Worker exp_gp_worker;     // runs grace periods (rcu_exp_gp_kthread_worker)
  Worker exp_poll_worker;   // waits for them where a poller has asked
  // By turns: one may still be waking when the next one is asked for.
  ExpGpWork exp_gp_work[2];
  platform::Atomic<uint32_t> exp_workers_started{0};
  platform::Atomic<uint32_t> expedited_nesting{0};  // rcu_expedited_nesting
  platform::Atomic<uint32_t> boot_expedites{0};     // the boot's own part of it
  platform::Atomic<uint32_t> expedited_knob{0};     // sysfs rcu_expedited
  platform::Atomic<uint32_t> normal_knob{0};        // sysfs rcu_normal
};

inline bool Node::IsLeaf() const { return level + 1u == state->levels; }

// The running machine's and CPU's own.
inline State& StateOf(Kernel& kernel) { return *kernel.rcu; }
inline Data& DataOf(const PerCpu& self) { return *self.rcu; }
inline Data& DataOf(const Kernel& kernel, CpuNumber cpu) { return kernel.rcu->data[cpu.value]; }

// Calls function(cpu number) for each set bit of a leaf's mask.
template <class Function>
void ForEachCpu(const Node& leaf, uint64_t mask, Function function) {
  for (; mask != 0; mask &= mask - 1) {
    function(CpuNumber(leaf.grplo + static_cast<uint32_t>(__builtin_ctzll(mask))));
  }
}

inline bool RcuWatches(uint32_t watching) { return (watching & 1) != 0; }

}  // namespace sipi::rcu
