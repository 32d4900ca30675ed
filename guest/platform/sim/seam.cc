// What the kernel asks of the machine: each call is the running CPU's, found by its stack.
#include <algorithm>
#include <cstring>

#include "guest/platform/sim/machine.h"

namespace sipi::sim {
namespace {

constexpr uint64_t kPmTimerHz = 3'579'545;  // ACPI 6.5, 4.8.3.3
constexpr uint64_t kPmTimerMask = 0xffffff;
constexpr uint64_t kNsPerSecond = 1'000'000'000;
// The counter's value at power-on: it wraps a moment after the guest has begun.
constexpr uint64_t kPmTimerAtZero = 0xc00000;

uint64_t PmTicksOf(uint64_t ns) {
  return ns / kNsPerSecond * kPmTimerHz + ns % kNsPerSecond * kPmTimerHz / kNsPerSecond;
}

// When the counter has counted that far, rounded up.
uint64_t NsOfPmTicks(uint64_t ticks) {
  return ticks / kPmTimerHz * kNsPerSecond +
         (ticks % kPmTimerHz * kNsPerSecond + kPmTimerHz - 1) / kPmTimerHz;
}

// When this CPU's TSC shows `ticks`.
uint64_t NsOfCpuTicks(const Cpu& cpu, uint64_t ticks) {
  return cpu.machine.NsOf(ticks - static_cast<uint64_t>(cpu.place.tsc_offset_ticks));
}

void Write(uint64_t ticks, uint32_t event_and_target, uint32_t value) {
  Cpu& cpu = Current();
  cpu.machine.Spend(cpu, cpu.machine.costs().trace_ns);
  if (cpu.machine.chaotic()) {
    cpu.machine.MayDie(cpu, event_and_target, value);
    cpu.machine.TakeMark(event_and_target, value);
  }
  abi::PerCpuHeader& header = cpu.self->header;
  const uint64_t at = header.ring_cursor;
  header.ring_cursor += sizeof(abi::TraceRecord);
  const abi::TraceRecord record = {.tsc = ticks,
                                   .event = static_cast<abi::TraceEvent>(event_and_target & 0xffff),
                                   .target = static_cast<uint16_t>(event_and_target >> 16),
                                   .value = value};
  if (at < header.ring_end) {
    *reinterpret_cast<abi::TraceRecord*>(at) = record;
  } else {
    cpu.machine.Spare(cpu, record);  // the cursor counts them all
  }
}

}  // namespace

void BeforeAccess(const void* word, bool write) {
  Cpu& cpu = Current();
  cpu.machine.Access(cpu, word, write);
}

bool Buffered(void* word, uint32_t bytes, uint64_t value, bool fenced) {
  Cpu& cpu = Current();
  return cpu.machine.chaotic() && cpu.machine.Buffer(cpu, word, bytes, value, fenced);
}

bool Forwarded(const void* word, uint64_t* value) { return Current().stores.Find(word, value); }

void BeforeStore(const void* word, uint64_t value) {
  Cpu& cpu = Current();
  if (cpu.machine.chaotic()) cpu.machine.CheckStore(word, value);
}

void AfterStore(const void* word) {
  Cpu& cpu = Current();
  cpu.machine.Stored(cpu, word);
}

bool SpinOn(const void* word, uint64_t deadline_ticks, uint32_t slice_us) {
  Cpu& cpu = Current();
  uint64_t deadline_ns = EventQueue::kNever;
  if (deadline_ticks != platform::NoDeadline().ticks) {
    deadline_ns = NsOfCpuTicks(cpu, deadline_ticks);
    if (deadline_ns <= cpu.now_ns) return false;
  }
  const bool stored =
      cpu.machine.Spin(cpu, word, deadline_ns, uint64_t{slice_us} * 1000) != WakeReason::kTime;
  MayPreempt();
  return stored;
}

void MayPreempt() {
  Cpu& cpu = Current();
  // A handler's own calls come here too: the switch waits for its end.
  if (!cpu.interrupted || cpu.handlers != 0) return;
  cpu.interrupted = false;
  cpu.machine.Preempt();
}

}  // namespace sipi::sim

namespace sipi::platform {

using sim::Cpu;
using sim::Current;
using sim::MayPreempt;

// --- Time.

uint64_t NowTicks() {
  Cpu& cpu = Current();
  cpu.machine.Spend(cpu, cpu.machine.costs().clock_ns);
  return cpu.machine.CpuTicks(cpu);
}

void SetTicksPerMs(uint32_t khz) { Current().machine.ticks_per_ms = khz; }
uint64_t TicksOfUs(uint64_t us) { return us * Current().machine.ticks_per_ms / 1000; }

uint64_t NowNs() {
  const uint64_t ticks = NowTicks();
  const uint64_t per_ms = Current().machine.ticks_per_ms;
  return ticks / per_ms * 1'000'000 + ticks % per_ms * 1'000'000 / per_ms;
}

namespace {

// Each round on the CPU on which the last one's interrupt has left this thread.
void DelayUntilNs(uint64_t time_ns) {
  bool over = false;
  while (!over) {
    Cpu& cpu = Current();
    over = cpu.machine.DelayUntil(cpu, time_ns);
    MayPreempt();
  }
}

}  // namespace

void Relax() {
  Cpu& cpu = Current();
  cpu.machine.Relax(cpu);
  MayPreempt();
}

void DelayUs(uint32_t us) { DelayUntilUs(NowTicks(), us); }

void DelayUntilUs(uint64_t begin_ticks, uint32_t us) {
  DelayUntilNs(sim::NsOfCpuTicks(Current(), begin_ticks + TicksOfUs(us)));
}

// --- Interrupts, this CPU's area, its trace.

void IrqDisable() { Current().irqs = false; }

void IrqEnable() {
  Cpu& cpu = Current();
  cpu.machine.EnableInterrupts(cpu);
  MayPreempt();
}

bool IrqsEnabled() { return Current().irqs; }

void HaltEnabled() {
  Cpu& cpu = Current();
  cpu.machine.Halt(cpu);
  MayPreempt();
}

void HaltForever() {
  Cpu& cpu = Current();
  cpu.machine.Park(cpu);
}

PerCpu& ThisCpu() { return *Current().self; }

void TracePacked(uint32_t event_and_target, uint32_t value) {
  Cpu& cpu = Current();
  sim::Write(cpu.machine.CpuTicks(cpu), event_and_target, value);
}

void TraceAt(uint64_t ticks, abi::TraceEvent event, uint16_t target, uint32_t value) {
  sim::Write(ticks, abi::PackTrace(event, target), value);
}

// --- Local APIC.

uint32_t ApicRead(apic::Reg reg) {
  Cpu& cpu = Current();
  const uint32_t value = cpu.machine.ReadApic(cpu, reg);
  MayPreempt();
  return value;
}

void ApicWrite(apic::Reg reg, uint32_t value) {
  Cpu& cpu = Current();
  cpu.machine.WriteApic(cpu, reg, value);
  MayPreempt();
}

void ApicWriteIcr(uint32_t low, uint32_t dest) {
  Cpu& cpu = Current();
  cpu.machine.WriteIcr(cpu, low, dest);
  MayPreempt();
}

void WriteTscDeadline(uint64_t ticks) {
  Cpu& cpu = Current();
  cpu.machine.WriteTscDeadline(cpu, ticks);
  MayPreempt();
}

// --- Clocks of the machine.

uint32_t ReadPmTimer() {
  Cpu& cpu = Current();
  cpu.machine.Spend(cpu, cpu.machine.costs().port_ns);
  cpu.machine.Sync(cpu);
  const auto value =
      static_cast<uint32_t>((sim::PmTicksOf(cpu.now_ns) + sim::kPmTimerAtZero) & sim::kPmTimerMask);
  MayPreempt();
  return value;
}

// As a loop of reads would: the last of them is the one that sees the time come.
void WaitPmTicks(uint32_t begin, uint32_t ticks) {
  Cpu& cpu = Current();
  const uint64_t now = sim::PmTicksOf(cpu.now_ns) + sim::kPmTimerAtZero;
  const uint64_t passed = (now - begin) & sim::kPmTimerMask;
  if (passed < ticks) {
    DelayUntilNs(sim::NsOfPmTicks(now + (ticks - passed) - sim::kPmTimerAtZero));
  }
  while (((ReadPmTimer() - begin) & sim::kPmTimerMask) < ticks) {
  }
}

uint32_t MeasureBusKhz(uint32_t tsc_khz) {
  constexpr uint32_t kWindowUs = 100;
  ApicWrite(apic::Reg::kLvtTimer, apic::kLvtMasked);
  constexpr uint32_t kDivideBy1 = 0xb;
  ApicWrite(apic::Reg::kTimerDivide, kDivideBy1);
  ApicWrite(apic::Reg::kTimerInitial, 0xffffffff);
  const uint64_t begin = NowTicks();
  const uint32_t count_begin = ApicRead(apic::Reg::kTimerCurrent);
  DelayUntilUs(begin, kWindowUs);
  const uint32_t count_end = ApicRead(apic::Reg::kTimerCurrent);
  const uint64_t ticks = NowTicks() - begin;
  ApicWrite(apic::Reg::kTimerInitial, 0);
  return static_cast<uint32_t>(uint64_t{count_begin - count_end} * tsc_khz / ticks);
}

// --- The machine.

bool InvariantTsc() { return true; }
bool HasTscDeadline() { return Current().machine.options().has_tsc_deadline; }
bool HasTopologyLeaf() { return true; }
bool EncryptedGuest() { return false; }

void CacheSetup() {  // reads PAT and writes it
  Cpu& cpu = Current();
  cpu.machine.Spend(cpu, 2 * uint64_t{cpu.machine.costs().msr_ns});
}

void PrepareStartup(Kernel& kernel) { Current().machine.trampoline().Prepare(*kernel.params); }

void Charge(abi::Charge kind) {
  Cpu& cpu = Current();
  cpu.machine.Impose(cpu, kind);
}

// There is no VMM that would hold CPUs back or sequence them.
void Doorbell(abi::Doorbell) {
  Cpu& cpu = Current();
  cpu.machine.Spend(cpu, cpu.machine.costs().port_ns);
}

void SerialWrite(const char* text, uint64_t bytes) {
  Cpu& cpu = Current();
  cpu.machine.Spend(cpu, bytes * cpu.machine.costs().port_ns);
  cpu.machine.Sync(cpu);
  if (cpu.machine.options().serial) cpu.machine.options().serial(text, bytes);
}

namespace {

void CopyText(char* to, size_t size, const char* from) {
  const size_t length = std::min(std::strlen(from), size - 1);
  std::memcpy(to, from, length);
  to[length] = 0;
}

void LeaveLockWord(sim::Machine& machine) {
  machine.kernel().result->trampoline_lock = machine.trampoline().locked() ? 1 : 0;
}

}  // namespace

void Exit(uint32_t code) {
  Cpu& cpu = Current();
  LeaveLockWord(cpu.machine);
  cpu.machine.Finish(
      cpu,
      {.kind = sim::EndKind::kGuestExit, .cpu = CpuNumber(cpu.number), .code = code, .text = {}});
}

void Panic(const char* file, uint32_t line, const char* text) {
  IrqDisable();
  Cpu& cpu = Current();
  abi::ResultPage& result = *cpu.machine.kernel().result;
  result.panic_cpu = cpu.number;
  result.panic_line = line;
  CopyText(result.panic_file, sizeof(result.panic_file), file);
  CopyText(result.panic_text, sizeof(result.panic_text), text);
  result.status = static_cast<uint32_t>(abi::GuestStatus::kPanic);
  Exit(1);
}

void Break(const abi::FaultSpec& fault) {
  Cpu& cpu = Current();
  switch (fault.kind) {
    case abi::Fault::kTripleFault:
      cpu.machine.Finish(cpu, {.kind = sim::EndKind::kFault,
                               .cpu = CpuNumber(cpu.number),
                               .code = 0,
                               .text = "triple fault on CPU " + std::to_string(cpu.number)});
    case abi::Fault::kHang:
      cpu.machine.Hang(cpu);
    case abi::Fault::kBadInsn:
      cpu.machine.Exception(cpu, 6);
    case abi::Fault::kException:
      cpu.machine.Exception(cpu, 0);
    case abi::Fault::kWildMmio:  // nobody answers
      cpu.machine.Spend(cpu, 2 * uint64_t{cpu.machine.costs().port_ns});
      return;
    case abi::Fault::kWildIcr:
      for (uint32_t mode = 0; mode < 8; ++mode)
        ApicWriteIcr(mode << 8 | apic::kIcrAssert | 0x20, 0x00fffff0);
      return;
    default:
      return;
  }
}

}  // namespace sipi::platform
