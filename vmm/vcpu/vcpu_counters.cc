#include "vmm/vcpu/vcpu_counters.h"

#include <numeric>

#include "vmm/kvm/linux_kvm.h"

namespace sipi {
namespace {

std::string ExitKey(uint32_t reason) {
  switch (reason) {
    case KVM_EXIT_IO:
      return "exits.io";
    case KVM_EXIT_MMIO:
      return "exits.mmio";
    case KVM_EXIT_HLT:
      return "exits.hlt";
    case KVM_EXIT_X86_RDMSR:
      return "exits.rdmsr";
    case KVM_EXIT_X86_WRMSR:
      return "exits.wrmsr";
    case KVM_EXIT_IRQ_WINDOW_OPEN:
      return "exits.irq_window";
    case KVM_EXIT_INTR:
      return "exits.intr";
    case KVM_EXIT_SHUTDOWN:
      return "exits.shutdown";
    case KVM_EXIT_FAIL_ENTRY:
      return "exits.fail_entry";
    case KVM_EXIT_INTERNAL_ERROR:
      return "exits.internal_error";
    case KVM_EXIT_SET_TPR:
      return "exits.set_tpr";
    default:
      return "exits.other";
  }
}

}  // namespace

VcpuCounters& VcpuCounters::operator+=(const VcpuCounters& other) {
  for (size_t i = 0; i < exits.size(); ++i) exits[i] += other.exits[i];
  interrupted_runs += other.interrupted_runs;
  unhandled_io += other.unhandled_io;
  unhandled_mmio += other.unhandled_mmio;
  unhandled_msr += other.unhandled_msr;
  inits_taken += other.inits_taken;
  startups_taken += other.startups_taken;
  interrupts_injected += other.interrupts_injected;
  nmis_injected += other.nmis_injected;
  timer_interrupts += other.timer_interrupts;
  blocked_sleeps += other.blocked_sleeps;
  yields += other.yields;
  imposed_sleeps += other.imposed_sleeps;
  imposed_ns += other.imposed_ns;
  sends += other.sends;
  return *this;
}

void VcpuCounters::AddTo(std::map<std::string, uint64_t>& counters) const {
  counters["exits"] += std::accumulate(exits.begin(), exits.end(), uint64_t{0});
  for (uint32_t reason = 0; reason < kReasons; ++reason) {
    if (exits[reason] != 0) counters[ExitKey(reason)] += exits[reason];
  }
  counters["runs.interrupted"] += interrupted_runs;
  counters["io.unhandled"] += unhandled_io;
  counters["mmio.unhandled"] += unhandled_mmio;
  counters["msr.unhandled"] += unhandled_msr;
  counters["inits"] += inits_taken;
  counters["startups"] += startups_taken;
  counters["interrupts"] += interrupts_injected;
  counters["nmis"] += nmis_injected;
  counters["timer.interrupts"] += timer_interrupts;
  counters["sleeps"] += blocked_sleeps;
  counters["yields"] += yields;
  counters["imposed.sleeps"] += imposed_sleeps;
  counters["imposed.ns"] += imposed_ns;
  counters["ipis"] += sends.ipis;
  counters["inits.sent"] += sends.inits;
  counters["startups.sent"] += sends.sipis;
  counters["startups.ignored"] += sends.sipis_ignored;
  counters["startup.dropped"] += sends.startup_dropped;
  counters["ipis.undeliverable"] += sends.undeliverable;
  counters["wakeups.futex"] += sends.futex_wakes;
  counters["wakeups.signal"] += sends.signal_wakes;
  counters["wakeups"] += sends.futex_wakes + sends.signal_wakes;
}

}  // namespace sipi
