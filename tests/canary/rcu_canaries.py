"""Broken lines of RCU and hotplug (see mutate.py). Numbers from 101."""

RCU_CANARIES = {
    101: ("a grace period ends one reader too early", [(
        "guest/kernel/rcu/qs.cc",
        "if ((waits & ~mask) != 0 || node->gp_tasks != nullptr) return node->lock.Unlock();",
        "if ((waits & ~mask) != 0 || (node->gp_tasks != nullptr && !CanaryIs(101)))\n"
        "      return node->lock.Unlock();")]),
    102: ("an expedited one ends with a blocked reader", [(
        "guest/kernel/rcu/exp_select.cc",
        "leaf_.exp_tasks = leaf_.blocked_first;",
        "leaf_.exp_tasks = CanaryIs(102) ? nullptr : leaf_.blocked_first;")]),
    103: ("expedited selection without the retry", [(
        "guest/kernel/rcu/exp_select.cc",
        "while (!Send(cpu, mask) && StillCounts(mask)) SleepJiffies(1);",
        "while (!Send(cpu, mask) && (CanaryIs(103) ? (quiescent_ |= mask, false) : StillCounts(mask))) {\n"
        "      SleepJiffies(1);\n"
        "    }")]),
    104: ("snapshot of idle taken after the check", [(
        "guest/kernel/rcu/fqs.cc",
        "    data.watching_snap = WatchingSnapshot(data);\n    return !RcuWatches(data.watching_snap);",
        "    const uint32_t checked = data.watching_snap;\n"
        "    data.watching_snap = WatchingSnapshot(data);\n"
        "    return !RcuWatches(CanaryIs(104) ? checked : data.watching_snap);")]),
    105: ("the snapshot of the last expedited one", [(
        "guest/kernel/rcu/exp_select.cc",
        "    data.exp_watching_snap = WatchingSnapshot(data);\n"
        "    return !RcuWatches(data.exp_watching_snap);",
        "    const uint32_t now = WatchingSnapshot(data);\n"
        "    if (!CanaryIs(105)) data.exp_watching_snap = now;\n"
        "    return !RcuWatches(now);")]),
    106: ("the IPI takes a reader for none", [(
        "guest/kernel/rcu/exp_qs.cc",
        "  if (thread.rcu.read_nesting == 0) {",
        "  if (thread.rcu.read_nesting == 0 || CanaryIs(106)) {")]),
    107: ("the IPI leaves a reader nothing to report", [(
        "guest/kernel/rcu/exp_qs.cc",
        "  data.cpu_no_qs_exp = true;\n  thread.rcu.special.exp_hint = 1;",
        "  if (CanaryIs(107)) return;\n  data.cpu_no_qs_exp = true;\n  thread.rcu.special.exp_hint = 1;")]),
    108: ("wake-up lost: the last report wakes nobody", [(
        "guest/kernel/rcu/exp_qs.cc",
        "  if (ReportUp(leaf) && wake)",
        "  if (ReportUp(leaf) && wake && !CanaryIs(108))")]),
    109: ("an expedited one that runs already counts", [(
        "guest/kernel/rcu/exp_gp.cc",
        "  return SeqSnap(state.expedited_sequence.FetchAdd(0, std::memory_order_seq_cst));",
        "  const uint64_t now = state.expedited_sequence.FetchAdd(0, std::memory_order_seq_cst);\n"
        "  return CanaryIs(109) ? SeqEnded(now) : SeqSnap(now);")]),
    110: ("only CPUs that are fully online are asked", [(
        "guest/kernel/rcu/exp_select.cc",
        "(leaf_.qsmaskinitnext & MaskOf(cpu)) == 0) return true;",
        "((CanaryIs(110) ? leaf_.ffmask : leaf_.qsmaskinitnext) & MaskOf(cpu)) == 0) return true;")]),
    # A plain store in the place of the locked step shows nowhere on x86: on every way from idle to a
    # reader (or to a callback) there is another locked operation, the run queue's lock, the call
    # list's exchange or the timers' lock. So the step that no such operation follows: it is seen from
    # the next interrupt on.
    111: ("a CPU leaves idle, and is seen to have done so late", [(
        "guest/kernel/rcu/dyntick.cc",
        "  if (!data.idle) return;\n  Step(data);\n  data.idle = false;",
        "  if (!data.idle) return;\n  if (!CanaryIs(111)) Step(data);\n  data.idle = false;"), (
        "guest/kernel/rcu/dyntick.cc",
        "  if (data.irq_nesting++ == 0 && data.idle",
        "  if (CanaryIs(111) && !data.idle && !RcuWatches(WatchingSnapshot(data))) Step(data);\n"
        "  if (data.irq_nesting++ == 0 && data.idle"), (
        "guest/kernel/rcu/dyntick.cc",
        "  ReportDeferredQs(self);\n  data.idle = true;",
        "  ReportDeferredQs(self);\n"
        "  if (CanaryIs(111) && !RcuWatches(WatchingSnapshot(data))) Step(data);\n"
        "  data.idle = true;")]),
    112: ("a cookie is done one grace period early", [(
        "guest/kernel/rcu/polled.cc",
        "Cookie GetState(Kernel& kernel) { return SeqSnap(Fenced(StateOf(kernel).gp_seq_polled)); }",
        "Cookie GetState(Kernel& kernel) {\n"
        "  const uint64_t now = Fenced(StateOf(kernel).gp_seq_polled);\n"
        "  return CanaryIs(112) ? SeqEnded(now) : SeqSnap(now);\n"
        "}")]),
    113: ("a grace period ends a number that began after it", [(
        "guest/kernel/rcu/polled.cc",
        "  if (*snap != 0 && *snap == now) {",
        "  if ((*snap != 0 && *snap == now) || (CanaryIs(113) && SeqState(now) != 0)) {")]),
    114: ("blocked reader not moved to the list", [(
        "guest/kernel/rcu/qs.cc",
        "if (leaving.rcu.special.blocked == 0) QueueBlockedReader(self, leaving);",
        "if (leaving.rcu.special.blocked == 0 && !CanaryIs(114)) QueueBlockedReader(self, leaving);")]),
    115: ("a reader that blocks does not hold the expedited one up", [(
        "guest/kernel/rcu/blocked.cc",
        "  if (blocks_exp && leaf.exp_tasks == nullptr) leaf.exp_tasks = &thread;",
        "  if (blocks_exp && leaf.exp_tasks == nullptr && !CanaryIs(115)) leaf.exp_tasks = &thread;")]),
    116: ("quiescent state reported for the wrong grace period", [(
        "guest/kernel/rcu/qs.cc",
        "    data.cpu_no_qs_norm = waits;\n",
        "    if (!CanaryIs(116)) data.cpu_no_qs_norm = waits;\n")]),
    117: ("accelerated to a too early grace period", [(
        "guest/kernel/rcu/callbacks.cc",
        "  return {SeqSnap(state.gp_seq.Load(std::memory_order_seq_cst)),\n",
        "  const uint64_t canary_now = state.gp_seq.Load(std::memory_order_seq_cst);\n"
        "  return {CanaryIs(117) ? SeqEnded(canary_now) : SeqSnap(canary_now),\n")]),
    118: ("callbacks not migrated", [(
        "guest/kernel/rcu/hotplug.cc",
        "    if (moved == 0) return;",
        "    if (moved == 0 || CanaryIs(118)) return;")]),
    119: ("barrier that misses a moved callback", [(
        "guest/kernel/rcu/hotplug.cc",
        "    EntrainBarrier(from);",
        "    if (!CanaryIs(119)) EntrainBarrier(from);")]),
    120: ("gp_seq started after the hotplug scan", [(
        "guest/kernel/rcu/gp.cc",
        "  state.gp_seq.Store(gp_seq, std::memory_order_seq_cst);\n"
        "  {\n    IrqSpinGuard guard(*state.kernel, state.root().lock);\n    PolledGpStart",
        "  if (CanaryIs(120)) {\n"
        "    for (Node& leaf : state.leaves()) ScanHotplug(state, leaf);\n"
        "  }\n"
        "  state.gp_seq.Store(gp_seq, std::memory_order_seq_cst);\n"
        "  {\n    IrqSpinGuard guard(*state.kernel, state.root().lock);\n    PolledGpStart"), (
        "guest/kernel/rcu/gp.cc",
        "  for (Node& leaf : state.leaves()) ScanHotplug(state, leaf);\n  SetGpState(state, GpState::kInit);",
        "  if (!CanaryIs(120)) {\n"
        "    for (Node& leaf : state.leaves()) ScanHotplug(state, leaf);\n"
        "  }\n"
        "  SetGpState(state, GpState::kInit);")]),
    121: ("offline CPU still waited for", [(
        "guest/kernel/rcu/hotplug.cc",
        "  leaf.qsmaskinitnext &= ~data.grpmask;",
        "  if (!CanaryIs(121)) leaf.qsmaskinitnext &= ~data.grpmask;"), (
        "guest/kernel/rcu/hotplug.cc",
        "  data.irq_nesting = 0;\n  IdleEnter(self);",
        "  data.irq_nesting = 0;\n  if (!CanaryIs(121)) IdleEnter(self);")]),
    # Its ReportDeferredQs alone finds nothing to report: the switch from the stopper to the idle
    # thread, which nobody can interrupt for a function call any more, has reported all of it. And a
    # CPU that does not report itself is found idle by the next scan: so it must not be, either.
    122: ("a dying CPU does not report what it owes", [(
        "guest/kernel/rcu/hotplug.cc",
        "  if ((leaf.qsmask.Load(std::memory_order_relaxed) & data.grpmask) != 0) {\n"
        "    data.urgent_qs",
        "  if (!CanaryIs(122) && (leaf.qsmask.Load(std::memory_order_relaxed) & data.grpmask) != 0) {\n"
        "    data.urgent_qs"), (
        "guest/kernel/rcu/hotplug.cc",
        "  if (!CanaryIs(121)) IdleEnter(self);",
        "  if (!CanaryIs(121) && !CanaryIs(122)) IdleEnter(self);")]),
    123: ("an unlock does not take its reader off the list", [(
        "guest/kernel/rcu/blocked.cc",
        "  if (special.blocked != 0) EndBlockedReader(*thread);",
        "  if (special.blocked != 0 && !CanaryIs(123)) EndBlockedReader(*thread);")]),
    124: ("rcu_expedite_gp() is not given back", [(
        "guest/kernel/rcu/nesting.cc",
        "CompareExchange(before, before - 1, std::memory_order_seq_cst));",
        "CompareExchange(before, CanaryIs(124) ? before : before - 1,\n"
        "                                    std::memory_order_seq_cst));")]),
    # One on top would do as well as two: the count cannot become 0 before that one is taken back. So
    # none.
    125: ("a barrier counts itself down too soon", [(
        "guest/kernel/rcu/barrier.cc",
        "      state.barrier_cpu_count.Store(2, std::memory_order_seq_cst);",
        "      state.barrier_cpu_count.Store(CanaryIs(125) ? 0 : 2, std::memory_order_seq_cst);"), (
        "guest/kernel/rcu/barrier.cc",
        "    Count(state, 2);",
        "    Count(state, CanaryIs(125) ? 0 : 2);")]),
    126: ("an interrupted idle CPU still counts as idle", [(
        "guest/kernel/rcu/dyntick.cc",
        "  if (data.irq_nesting++ == 0 && data.idle) Step(data);",
        "  if (data.irq_nesting++ == 0 && data.idle && !CanaryIs(126)) Step(data);"), (
        "guest/kernel/rcu/dyntick.cc",
        "  if (--data.irq_nesting == 0 && data.idle) Step(data);",
        "  if (--data.irq_nesting == 0 && data.idle && !CanaryIs(126)) Step(data);")]),
    127: ("a full cookie by the root's gp_seq", [(
        "guest/kernel/rcu/polled.cc",
        "SeqSnap(Fenced(state.gp_seq));",
        "SeqSnap(Fenced(CanaryIs(127) ? state.root().gp_seq : state.gp_seq));")]),
    128: ("a CPU dies before a call's interrupt has been sent to it", [(
        "guest/kernel/sched/smp_call.cc",
        "  const auto none = [](uint32_t callers) { return callers == 0; };",
        "  const auto none = [](uint32_t callers) { return callers == 0 || CanaryIs(128); };")]),
}
