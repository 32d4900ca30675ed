#!/usr/bin/env python3
"""Writes a copy of the guest kernel and the simulator with broken lines in it, each behind its number.

    mutate.py SOURCE-ROOT OUT-DIR DEPFILE FLAT-OUTPUT...

Every canary is a text that must stand exactly once in its file: a kernel that changes takes its canaries along, or the
build stops and says which. Headers go to OUT-DIR/tree, sources to the flat outputs (canary_FOLDER_NAME.cc), the
numbers and names to OUT-DIR/canary.h, what was read to DEPFILE.
"""

import pathlib
import sys

sys.dont_write_bytecode = True  # not into the sources

from rcu_canaries import RCU_CANARIES

# Number: name, and the lines that are replaced.
CANARIES = {
    1: ("unlock at a wrong address", [(
        "guest/platform/sim/trampoline.cc",
        "  locked_ = false;\n  // Whoever tries next",
        "  locked_ = CanaryIs(1);\n  if (locked_) return;\n  // Whoever tries next")]),
    2: ("ID from CPUID under lying firmware", [(
        "guest/platform/sim/trampoline.cc",
        "== apic_id ? number",
        "== apic_id || CanaryIs(2) ? number")]),
    3: ("late AP not cancelled", [(
        "guest/kernel/ap.cc",
        "  if (!SyncTransition(*self.kernel, self.cpu, SyncState::kKicked, SyncState::kAlive)) {",
        "  if (CanaryIs(3)) {\n"
        "    SyncWord(*self.kernel, self.cpu)\n"
        "        .Exchange(static_cast<uint32_t>(SyncState::kAlive), std::memory_order_seq_cst);\n"
        "  } else if (!SyncTransition(*self.kernel, self.cpu, SyncState::kKicked,\n"
        "                             SyncState::kAlive)) {")]),
    4: ("TSC check of two APs at once", [(
        "guest/kernel/tsc_check.cc",
        "  while (lock.Exchange(1, std::memory_order_acquire) != 0) {",
        "  while (!CanaryIs(4) && lock.Exchange(1, std::memory_order_acquire) != 0) {")]),
    5: ("count taken for the highest number", [(
        "guest/kernel/call.cc",
        "  for (uint32_t i = 0; i < kernel.params->order_count; ++i) {\n"
        "    const CpuNumber cpu(kernel.order[i]);",
        "  const uint32_t online = kernel.online_count.Load(std::memory_order_seq_cst);\n"
        "  for (uint32_t i = 0; i < kernel.params->order_count; ++i) {\n"
        "    const CpuNumber cpu(kernel.order[i]);\n"
        "    if (CanaryIs(5) && cpu.value >= online) continue;")]),
    6: ("SIPI accepted before INIT", [(
        "apic/model/init_sipi.h",
        "  const bool sipi = word.Has(StartupWord::kSipiPending) && !(init && bsp != 0);",
        "  const bool sipi = word.Has(StartupWord::kSipiPending) && !(init && bsp != 0);\n"
        "  if (sipi && init && CanaryIs(6)) {\n"
        "    return {{bsp | StartupWord::kInitPending}, {Kind::kStart, word.SipiVector()}};\n"
        "  }")]),
    7: ("SIPI that restarts a running CPU", [(
        "apic/model/init_sipi.h",
        "  if (!will_wait || word.Has(StartupWord::kSipiPending)) return word;",
        "  if ((!will_wait && !CanaryIs(7)) || word.Has(StartupWord::kSipiPending)) return word;")]),
    8: ("INIT that loses a pending SIPI", [(
        "apic/model/init_sipi.h",
        "  if (sipi) return {{bsp}, {init ?",
        "  if (sipi && !(init && CanaryIs(8))) return {{bsp}, {init ?")]),
    9: ("missing fence at the hand-over", [(
        "guest/kernel/wait.h",
        "  sleeping.Exchange(1, std::memory_order_seq_cst);",
        "  if (CanaryIs(9)) {\n"
        "    sleeping.Store(1, std::memory_order_release);\n"
        "  } else {\n"
        "    sleeping.Exchange(1, std::memory_order_seq_cst);\n"
        "  }")]),
    10: ("two steps swapped", [(
        "guest/kernel/cpuhp.cc",
        "  for (; step != end && step->state <= target; ++step) {\n    platform::TracePacked",
        "  for (const CpuhpStep* at = step; at != end && at->state <= target; ++at) {\n"
        "    step = at;\n"
        "    if (CanaryIs(10) && at->state == abi::CpuhpState::kApTopologyStarting) step = at + 1;\n"
        "    if (CanaryIs(10) && at->state == abi::CpuhpState::kApTscSyncStarting) step = at - 1;\n"
        "    platform::TracePacked")]),
    11: ("an AP that parks leaves the trampoline locked", [(
        "guest/platform/sim/trampoline.cc",
        "    Release(cpu);\n  }\n",
        "    if (!(CanaryIs(11) && number == abi::kNoCpu)) Release(cpu);\n  }\n")]),
    12: ("siblings kicked before primaries are alive", [(
        "guest/kernel/boot_passes.h",
        "    if (scope == sequence::Scope::kAll) return true;",
        "    if (scope == sequence::Scope::kAll || CanaryIs(12)) return true;")]),
    13: ("step undone twice", [(
        "guest/kernel/cpuhp.cc",
        "    if (steps[i].teardown != nullptr) (void)steps[i].teardown(self, cpu);",
        "    if (steps[i].teardown != nullptr) (void)steps[i].teardown(self, cpu);\n"
        "    if (CanaryIs(13) && steps[i].state == abi::CpuhpState::kApTopologyStarting) {\n"
        "      (void)steps[i].teardown(self, cpu);\n"
        "    }")]),
    14: ("a global spare handed to the wrong AP", [(
        "guest/kernel/smpboot.cc",
        "  if (!SyncTransition(kernel, cpu, from, SyncState::kKicked)) return Error::kCancelled;",
        "  if (!SyncTransition(kernel, cpu, from, SyncState::kKicked)) return Error::kCancelled;\n"
        "  g_spare = cpu.value;"), (
        "guest/platform/sim/trampoline.cc",
        "  const uint32_t number = Identify(cpu, params, &unknown_id);",
        "  uint32_t number = Identify(cpu, params, &unknown_id);\n"
        "  if (CanaryIs(14) && number != abi::kNoCpu) number = g_spare;")]),
    15: ("wake-up before the store", [(
        "guest/kernel/smpboot.cc",
        "    if (state == SyncState::kAlive &&\n"
        "        SyncTransition(kernel_, cpu, SyncState::kAlive, SyncState::kShouldOnline)) {\n"
        "      NotifyCpu(self_, cpu);",
        "    if (CanaryIs(15)) NotifyCpu(self_, cpu);\n"
        "    if (state == SyncState::kAlive &&\n"
        "        SyncTransition(kernel_, cpu, SyncState::kAlive, SyncState::kShouldOnline)) {\n"
        "      if (!CanaryIs(15)) NotifyCpu(self_, cpu);")]),
    16: ("topology masks without their lock", [(
        "guest/kernel/steps.cc",
        "  LockShort(kernel, kernel.topology_lock);",
        "  if (!CanaryIs(16)) LockShort(kernel, kernel.topology_lock);")]),
    17: ("halts without looking again", [(
        "guest/kernel/wait.h",
        "  if (!done() && !platform::Expired(deadline)) {",
        "  if ((CanaryIs(17) || !done()) && !platform::Expired(deadline)) {")]),
    18: ("no EOI for the wake-up", [(
        "guest/platform/sim/kernel_program.cc",
        "  if (vector.value == abi::kWakeVector) return EndOfInterrupt();",
        "  if (vector.value == abi::kWakeVector && CanaryIs(18)) return;\n"
        "  if (vector.value == abi::kWakeVector) return EndOfInterrupt();")]),
    19: ("function call that counts twice", [(
        "guest/kernel/call.cc",
        "  if (Requested(kernel, self.cpu).Exchange(0, std::memory_order_seq_cst) == 0) return;",
        "  const bool asked = Requested(kernel, self.cpu).Exchange(0, std::memory_order_seq_cst) != 0;\n"
        "  if (!asked && !CanaryIs(19)) return;")]),
    20: ("a CPU that goes down answers no call", [(
        "guest/kernel/ap.cc",
        "  AnswerOnTheWayDown(self);",
        "  if (!CanaryIs(20)) AnswerOnTheWayDown(self);")]),
    21: ("a given-up CPU is not waited for", [(
        "guest/kernel/smpboot.cc",
        "    WaitDead(self, cpu);\n    return Error::kStepFailed;",
        "    if (!CanaryIs(21)) WaitDead(self, cpu);\n    return Error::kStepFailed;")]),
    22: ("INIT to a CPU that may be alive", [(
        "guest/kernel/tree.cc",
        "    if (!TreeKickUnderWay(kernel, cpu)) KickOps(self).Remind(cpu);",
        "    if (CanaryIs(22)) KickOps(self).Kick(cpu);\n"
        "    else if (!TreeKickUnderWay(kernel, cpu)) KickOps(self).Remind(cpu);"), (
        "guest/kernel/smpboot.cc",
        "  if (from == SyncState::kDead) {\n",
        "  if (from == SyncState::kDead || CanaryIs(22)) {\n")]),
    23: ("the second SIPI is never sent", [(
        "guest/kernel/kick.h",
        "  void SendStartup(CpuNumber target, uint32_t) { sipi::SendStartup(self_, target, kVector); }",
        "  void SendStartup(CpuNumber target, uint32_t index) {\n"
        "    if (!CanaryIs(23) || index == 0) sipi::SendStartup(self_, target, kVector);\n"
        "  }")]),
    24: ("no INIT to a single CPU", [(
        "guest/kernel/kick.h",
        "  void SendInit(CpuNumber target) { sipi::SendInit(self_, target); }",
        "  void SendInit(CpuNumber target) {\n"
        "    if (!CanaryIs(24)) sipi::SendInit(self_, target);\n"
        "  }")]),
    25: ("the failed step is undone as well", [(
        "guest/kernel/cpuhp.cc",
        "  Enter(*self.kernel, cpu, step.section, below);\n  CpuhpDown",
        "  Enter(*self.kernel, cpu, step.section, CanaryIs(25) ? step.state : below);\n  CpuhpDown")]),
    26: ("the trampoline's lock lets everybody in", [(
        "guest/platform/sim/trampoline.cc",
        "  if (!locked_) {\n    locked_ = true;",
        "  if (!locked_ || CanaryIs(26)) {\n    locked_ = true;")]),
    27: ("a retry makes no try", [(
        "guest/kernel/smpboot.cc",
        "    if (TreeKickUnderWay(kernel_, cpu)) return false;\n    platform::Trace(TraceEvent::kRetry",
        "    if (TreeKickUnderWay(kernel_, cpu) || CanaryIs(27)) return false;\n"
        "    platform::Trace(TraceEvent::kRetry")]),
    28: ("a given-up CPU gets no error", [(
        "guest/kernel/smpboot.cc",
        "      TraceTimeout(kernel_, cpu);\n      slot.error = ",
        "      TraceTimeout(kernel_, cpu);\n      if (!CanaryIs(28)) slot.error = ")]),
    29: ("an AP that parks does not say that it is dead", [(
        "guest/kernel/ap.cc",
        "  SayDead(self);\n",
        "  if (!CanaryIs(29)) SayDead(self);\n")]),
    30: ("a CPU that is retried keeps its error", [(
        "guest/kernel/smpboot.cc",
        "    slot.error = 0;\n    slot.parked = 0;",
        "    if (!CanaryIs(30)) slot.error = 0;\n    slot.parked = 0;")]),
    31: ("a retry does not wait for who is late", [(
        "guest/kernel/smpboot.cc",
        "    if (SyncStateOf(kernel, cpu) == SyncState::kShouldDie)\n      (void)",
        "    if (!CanaryIs(31) && SyncStateOf(kernel, cpu) == SyncState::kShouldDie)\n      (void)"), (
        "guest/kernel/smpboot.cc",
        "    if (ParkedMeanwhile(",
        "    if (!CanaryIs(31) && ParkedMeanwhile(")]),
    32: ("a step is entered and not run", [(
        "guest/kernel/cpuhp.cc",
        "    } else if (step->startup != nullptr) {",
        "    } else if (step->startup != nullptr &&\n"
        "               !(CanaryIs(32) && step->state == abi::CpuhpState::kApTimersStarting)) {")]),
    33: ("who parks after its retry began is silent", [(
        "guest/kernel/ap.cc",
        "  while (state == SyncState::kShouldDie || state == SyncState::kKicked) {",
        "  while (state == SyncState::kShouldDie ||\n"
        "         (!CanaryIs(33) && state == SyncState::kKicked)) {")]),
    34: ("an idle AP does not see that it was given up", [(
        "guest/kernel/ap.cc",
        "  while (SyncStateOf(*self.kernel, self.cpu) == SyncState::kOnline) platform::HaltEnabled();",
        "  while (SyncStateOf(*self.kernel, self.cpu) == SyncState::kOnline || CanaryIs(34)) {\n"
        "    platform::HaltEnabled();\n"
        "  }")]),
    35: ("a retry does not wait for last steps", [(
        "guest/kernel/smpboot.cc",
        "    if (SyncStateOf(kernel, cpu) == SyncState::kOnline) (void)",
        "    if (!CanaryIs(35) && SyncStateOf(kernel, cpu) == SyncState::kOnline) (void)")]),
}

HEADER = """// Generated by tests/canary/mutate.py.
#pragma once

#include <cstdint>

namespace sipi {

// Of the machine that this thread of the host runs.
inline thread_local uint32_t g_canary = 0;
// For machines whose options do not name one: those of commands.
inline thread_local uint32_t g_commands_canary = 0;
inline thread_local uint32_t g_spare = 0;
constexpr bool CanaryIs(uint32_t number) {
  return __builtin_is_constant_evaluated() ? false : g_canary == number;
}

struct CanaryName {
  uint32_t number;
  const char* name;
};
inline constexpr CanaryName kCanaries[] = {
%s};
// In RCU and hotplug: for explored runs of that scenario.
inline constexpr CanaryName kRcuCanaries[] = {
%s};

}  // namespace sipi
"""

# The machine tells which canary its thread's code is to have.
RUN = ("guest/platform/sim/machine.cc", "End Machine::Run() {\n", 
       "End Machine::Run() {\n"
       "  g_canary = options_.chaos.canary != 0 ? options_.chaos.canary : g_commands_canary;\n")


def write_if_new(target, text):
    """True if that changed anything."""
    if target.exists() and target.read_text() == text:
        return False
    target.write_text(text)
    return True


def main():
    source, out, depfile, flat = *map(pathlib.Path, sys.argv[1:4]), sys.argv[4:]
    edits = {}
    for number, (name, changes) in (CANARIES | RCU_CANARIES).items():
        for path, old, new in changes:
            edits.setdefault(path, []).append((f"canary {number}, {name}", old, new))
    edits.setdefault(RUN[0], []).append(("canary switch", RUN[1], RUN[2]))

    tree = out / "tree"
    tree.mkdir(parents=True, exist_ok=True)
    names = [
        "".join(f'    {{{number}, "{name}"}},\n' for number, (name, _) in canaries.items())
        for canaries in (CANARIES, RCU_CANARIES)
    ]
    header = out / "canary.h"
    stale = write_if_new(header, HEADER % tuple(names))
    read = []
    folders = ["guest/kernel", "guest/scenario", "guest/platform/sim", "apic/model"]
    for path in sorted(p for f in folders for p in (source / f).rglob("*") if p.suffix in (".h", ".cc")):
        relative = path.relative_to(source).as_posix()
        text = path.read_text()
        read.append(path)
        for what, old, new in edits.pop(relative, []):
            if text.count(old) != 1:
                sys.exit(f"{what}: its text stands {text.count(old)} times in {relative}; mend tests/canary/mutate.py")
            text = text.replace(old, new)
        if path.suffix == ".h":
            target = tree / relative
            target.parent.mkdir(parents=True, exist_ok=True)
            text = text.replace("#pragma once\n", '#pragma once\n\n#include "canary.h"\n', 1)
        else:
            target = out / f"canary_{path.parent.name}_{path.name}"
            text = '#include "canary.h"\n' + text
            if target.name not in flat:
                sys.exit(f"{target.name} is not built: add it to tests/canary/meson.build")
        changed = write_if_new(target, text)
        stale = stale or (changed and path.suffix == ".h")
    if edits:
        sys.exit(f"canaries in files that are not there: {sorted(edits)}")
    # Ninja looked at the headers in OUT-DIR/tree, which it does not know for outputs, before they were written. All that
    # includes them includes this one.
    if stale:
        header.touch()
    depfile.write_text(f"{header.name}: {' '.join(map(str, read))}\n")


main()
