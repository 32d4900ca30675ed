// vCPUs on fewer cores (Options::host_cores): a queue, and slices. A CPU that executes, spins or
// hangs needs a core; one that is halted, waits for its SIPI, or sits out an imposed latency needs
// none, as on KVM, where its thread sleeps.
#include <algorithm>

#include "guest/platform/sim/machine.h"

namespace sipi::sim {

// The CPU wants to go on, and has no core.
void Machine::WantCore(Cpu& cpu) {
  cpu.ready = true;
  if (cpu.queued) return;
  cpu.queued = true;
  core_queue_.push_back(cpu.number);
  FillCores();
}

void Machine::FillCores() {
  while (free_cores_ != 0 && !core_queue_.empty()) {
    Cpu& cpu = cpus_[core_queue_.front()];
    core_queue_.pop_front();
    --free_cores_;
    cpu.queued = false;
    cpu.on_core = true;
    const uint64_t begin = now_ns_ + costs().core_switch_ns;
    cpu.slice_end_ns = begin + (cpu.polite ? costs().port_ns : costs().quantum_ns);
    if (trampoline_.MayTake(cpu)) trampoline_.Take(cpu, begin);
    if (cpu.ready) {
      cpu.ready = false;
      queue_.Set(ResumeSlot(cpu), begin);
    } else {
      queue_.Set(SliceSlot(cpu), cpu.slice_end_ns);  // it goes on spinning
    }
  }
}

// The CPU blocks in `state`.
void Machine::KeepOrLeaveCore(Cpu& cpu, CpuState state) {
  const bool spins =
      state == CpuState::kSpinning || state == CpuState::kDelaying || state == CpuState::kHung;
  if (!spins) return LeaveCore(cpu);
  queue_.Set(SliceSlot(cpu), std::max(cpu.slice_end_ns, cpu.now_ns));
}

void Machine::LeaveCore(Cpu& cpu) {
  queue_.Cancel(SliceSlot(cpu));
  if (!cpu.on_core) return;
  cpu.on_core = false;
  ++free_cores_;
  FillCores();
}

// After an INIT.
void Machine::ForgetCore(Cpu& cpu) {
  if (cpu.queued) std::erase(core_queue_, cpu.number);
  cpu.queued = false;
  cpu.ready = false;
  cpu.polite = false;
  LeaveCore(cpu);
}

// A CPU that spins has had its slice.
void Machine::OnSlice(Cpu& cpu) {
  const bool spins = cpu.state != CpuState::kExecuting;
  if (!cpu.on_core || !spins) return;
  if (core_queue_.empty()) {
    cpu.slice_end_ns = now_ns_ + (cpu.polite ? costs().port_ns : costs().quantum_ns);
    return queue_.Set(SliceSlot(cpu), cpu.slice_end_ns);
  }
  ++(cpu.polite ? stats_.yields : stats_.preemptions);
  cpu.queued = true;
  core_queue_.push_back(cpu.number);
  LeaveCore(cpu);
}

// The running CPU gives its core to another, and comes back when its turn is there.
void Machine::GiveUpCore(Cpu& cpu) {
  ++stats_.preemptions;
  cpu.ready = true;
  cpu.queued = true;
  core_queue_.push_back(cpu.number);
  LeaveCore(cpu);
  cpu.fiber.Leave();
  // Pulses took place while it had no core, and cost it nothing but what is left of one.
  if (stealing()) LoseCore(cpu, /*waited=*/true);
  now_ns_ = cpu.now_ns;
}

}  // namespace sipi::sim
