// How a CPU's fiber passes time: costs, lines, waits, interrupts.
#include <algorithm>

#include "guest/platform/sim/machine.h"

namespace sipi::sim {
namespace {

constexpr uint64_t kLooksPerTurn = 1 << 14;

// The CPU spins or delays: it holds its core, and takes interrupts if they are enabled.
bool Spins(CpuState state) { return state == CpuState::kSpinning || state == CpuState::kDelaying; }

}  // namespace

void Machine::Sync(Cpu& cpu) {
  if (chaotic()) Perturb(cpu);
  if (stealing()) LoseCore(cpu, /*waited=*/false);
  // Now and then through the queue, however alone this CPU is: a run can be stopped there.
  if (queue_.NextTime() <= cpu.now_ns || cpu.now_ns > limit_ns_ || ++checks_ % kLooksPerTurn == 0) {
    ComeBack(cpu);
  }
  now_ns_ = cpu.now_ns;
  if (limited() && SliceIsOver(cpu)) GiveUpCore(cpu);
  if (cpu.attention && (cpu.irqs || cpu.nmi)) TakeInterrupts(cpu);
}

// Lets everything happen that comes before this CPU's time.
void Machine::ComeBack(Cpu& cpu) {
  queue_.Set(ResumeSlot(cpu), cpu.now_ns);
  cpu.fiber.Leave();
}

WakeReason Machine::Block(Cpu& cpu, CpuState state, uint64_t until_ns) {
  // Time passes, and a store buffer does not hold anything for long.
  if (chaotic()) DrainStores(cpu, 0);
  cpu.state = state;
  cpu.woken = false;
  if (until_ns != kNever) queue_.Set(ResumeSlot(cpu), std::max(until_ns, cpu.now_ns));
  if (limited()) KeepOrLeaveCore(cpu, state);
  if (by_turns()) {
    now_ns_ = std::max(now_ns_, cpu.now_ns);
    PassTurn(cpu);
  }
  cpu.fiber.Leave();
  if (stealing()) LoseCore(cpu, /*waited=*/true);
  return cpu.wake;
}

void Machine::Wake(Cpu& cpu, uint64_t time_ns, WakeReason reason) {
  if (cpu.woken) return;
  Unlink(cpu);
  cpu.woken = true;
  cpu.wake = reason;
  queue_.Set(ResumeSlot(cpu), time_ns);
}

// Out of the list of those that spin on a word, or for the trampoline.
void Machine::Unlink(Cpu& cpu) {
  if (cpu.wants_trampoline) trampoline_.Remove(cpu);
  cpu.wants_trampoline = false;
  if (cpu.word == 0) return;
  Line& line = memory().LineAt(cpu.word);
  (cpu.previous_waiter != nullptr ? cpu.previous_waiter->next_waiter : line.first_waiter) =
      cpu.next_waiter;
  (cpu.next_waiter != nullptr ? cpu.next_waiter->previous_waiter : line.last_waiter) =
      cpu.previous_waiter;
  cpu.next_waiter = nullptr;
  cpu.previous_waiter = nullptr;
  cpu.word = 0;
}

// Queues for the line and takes it over; when that is done.
uint64_t Machine::Transfer(Cpu& cpu, Line& line) {
  const uint32_t from = line.writer;
  const bool remote = from != 0 && cpus_[from - 1].place.package != cpu.place.package;
  const uint64_t begin = std::max(cpu.now_ns, line.busy_until_ns);
  ++stats_.line_transfers;
  stats_.line_wait_ns += begin - cpu.now_ns;
  line.busy_until_ns = begin + (remote ? costs().remote_line_ns : costs().line_ns);
  return line.busy_until_ns;
}

void Machine::Access(Cpu& cpu, const void* word, bool write) {
  touched_ = word;
  Sync(cpu);
  if (!memory().Contains(word))
    platform::Panic(__FILE__, __LINE__, "a shared word is not in memory");
  const uint64_t offset = memory().OffsetOf(word);
  Line& line = memory().LineAt(offset);
  const uint32_t me = cpu.number + 1;
  const bool paid = cpu.paid_line == offset / kLineBytes;
  cpu.paid_line = kNever;
  const bool mine =
      write ? line.writer == me && line.reader == 0 : line.writer == me || line.reader == me;
  if (mine || (paid && !write)) {
    cpu.now_ns += write ? costs().atomic_ns : costs().cached_ns;
  } else {
    cpu.now_ns = Transfer(cpu, line) + (write ? costs().atomic_ns : 0);
    if (!by_turns()) Sync(cpu);  // one step, one choice
  }
  if (write) {
    line.writer = me;
    line.reader = 0;
  } else if (line.writer != me) {
    line.reader = me;
  }
}

void Machine::Stored(Cpu& cpu, const void* word) {
  const uint64_t offset = memory().OffsetOf(word);
  Line& line = memory().LineAt(offset);
  for (Cpu* each = line.first_waiter; each != nullptr;) {
    Cpu& waiter = *each;
    each = waiter.next_waiter;
    if (waiter.word != offset) continue;
    // Each fetches the line, one after the other, and finds it paid for when it looks.
    waiter.now_ns = cpu.now_ns;
    const uint64_t arrives = Transfer(waiter, line);
    waiter.paid_line = offset / kLineBytes;
    line.reader = waiter.number + 1;
    Wake(waiter, arrives, WakeReason::kStore);
  }
}

WakeReason Machine::Spin(Cpu& cpu, const void* word, uint64_t deadline_ns, uint64_t slice_ns) {
  const uint64_t offset = memory().OffsetOf(word);
  Line& line = memory().LineAt(offset);
  cpu.word = offset;
  cpu.previous_waiter = line.last_waiter;
  cpu.next_waiter = nullptr;
  (line.last_waiter != nullptr ? line.last_waiter->next_waiter : line.first_waiter) = &cpu;
  line.last_waiter = &cpu;
  cpu.polite = slice_ns != 0;
  if (cpu.polite) cpu.slice_end_ns = cpu.now_ns + slice_ns;
  const WakeReason reason = Block(cpu, CpuState::kSpinning, deadline_ns);
  cpu.polite = false;
  if (reason == WakeReason::kInterrupt) TakeInterrupts(cpu);
  return reason;
}

void Machine::WaitForTrampoline(Cpu& cpu) {
  cpu.wants_trampoline = true;
  cpu.polite = true;
  cpu.slice_end_ns = cpu.now_ns + costs().port_ns;
  Block(cpu, CpuState::kSpinning, kNever);
  cpu.polite = false;
}

bool Machine::DelayUntil(Cpu& cpu, uint64_t time_ns) {
  while (cpu.now_ns < time_ns) {
    // Alone until then: no need to switch.
    const bool alone = queue_.NextTime() > time_ns && time_ns <= limit_ns_ && !limited() &&
                       !stealing() && ready_.empty();
    if (alone) {
      cpu.now_ns = time_ns;
      break;
    }
    if (Block(cpu, CpuState::kDelaying, time_ns) == WakeReason::kInterrupt) {
      TakeInterrupts(cpu);
      return false;
    }
  }
  Sync(cpu);
  return true;
}

void Machine::EnableInterrupts(Cpu& cpu) {
  cpu.irqs = true;
  Sync(cpu);
}

// STI; HLT; CLI. Whatever is pending is taken before the halt: STI's shadow covers the HLT, and an
// interrupt ends that at once.
void Machine::Halt(Cpu& cpu) {
  ++stats_.halts;
  Sync(cpu);
  cpu.irqs = true;
  while (!(cpu.attention && TakeInterrupts(cpu))) Block(cpu, CpuState::kHalted, kNever);
  cpu.irqs = false;
}

void Machine::Park(Cpu& cpu) {
  cpu.irqs = false;
  Sync(cpu);
  if (settled_) MayNeedInit(cpu);
  for (;;) {
    Block(cpu, CpuState::kParked, kNever);
    TakeInterrupts(cpu);
  }
}

void Machine::Hang(Cpu& cpu) {
  cpu.irqs = false;
  cpu.hung = true;
  cpu.harmed = true;
  Sync(cpu);
  for (;;) Block(cpu, CpuState::kHung, kNever);
}

// As the VMM does on KVM: the CPU sleeps, and holds no core meanwhile.
void Machine::Impose(Cpu& cpu, abi::Charge kind) {
  const Latency& latency = options_.charges[static_cast<size_t>(kind)];
  const uint64_t ns = Draw(cpu, latency);
  if (ns == 0) return;
  Sync(cpu);
  const auto track = static_cast<int32_t>(cpu.number);
  Record(track, cpu.now_ns, abi::TraceEvent::kImposedBegin, static_cast<uint32_t>(kind));
  Block(cpu, CpuState::kImposed, cpu.now_ns + ns);
  Record(track, cpu.now_ns, abi::TraceEvent::kImposedEnd, static_cast<uint32_t>(kind));
  ++stats_.imposed_sleeps;
  stats_.imposed_ns += ns;
}

uint64_t Machine::Draw(Cpu& cpu, const Latency& latency) {
  if (latency.jitter_ns == 0) return latency.ns;
  return latency.ns - latency.jitter_ns + cpu.random.Below(2 * latency.jitter_ns + 1);
}

void Machine::Relax(Cpu& cpu) {
  ++stats_.yields;
  Spend(cpu, costs().port_ns);
  if (limited() && !core_queue_.empty()) GiveUpCore(cpu);
  if (by_turns()) StandBack(cpu);
  Sync(cpu);
}

// Takes what can be taken; true if that was anything.
bool Machine::TakeInterrupts(Cpu& cpu) {
  cpu.attention = false;
  if (cpu.nmi) Exception(cpu, 2);  // this kernel has no use for one
  bool any = false;
  while (cpu.irqs) {
    const std::optional<Vector> vector = cpu.apic.HighestDeliverable();
    if (!vector) break;
    any = true;
    ++stats_.interrupts;
    cpu.apic.Acknowledge(*vector);
    cpu.irqs = false;
    Spend(cpu, costs().interrupt_ns);
    if (chaotic()) DrainStores(cpu, 0);  // the gate and IRET serialise
    ++cpu.handlers;
    program_.interrupt(cpu, *vector);
    --cpu.handlers;
    cpu.irqs = true;
    cpu.interrupted = true;
  }
  // With interrupts off what is pending stays pending.
  cpu.attention = cpu.attention || cpu.apic.HighestDeliverable().has_value();
  return any;
}

void Machine::Attention(Cpu& cpu) {
  cpu.attention = true;
  const bool deliverable = cpu.nmi || (cpu.irqs && cpu.apic.HighestDeliverable().has_value());
  if (!deliverable) return;
  if (cpu.state == CpuState::kHalted || cpu.state == CpuState::kParked) {
    Wake(cpu, now_ns_ + costs().wake_ns, WakeReason::kInterrupt);
  } else if (Spins(cpu.state)) {
    Wake(cpu, now_ns_, WakeReason::kInterrupt);
  }
}

}  // namespace sipi::sim
