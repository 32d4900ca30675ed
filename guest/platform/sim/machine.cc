// The machine's life: power on, one event after the other, the end.
#include "guest/platform/sim/machine.h"

#include <cerrno>
#include <cstring>
#include <utility>

namespace sipi::sim {
namespace {

// A TSC that has run for a second: no time is 0, and a CPU whose TSC is behind has none below it.
constexpr uint64_t kPowerOnNs = 1'000'000'000;
constexpr uint64_t kEventsPerStopCheck = 1 << 12;

apic::ApicConfig ConfigOf(const Options& options) {
  apic::ApicConfig config;
  config.tsc_hz = uint64_t{options.tsc_khz} * 1000;
  config.has_tsc_deadline = options.has_tsc_deadline;
  return config;
}

std::vector<ApicId> IdsOf(const Options& options) {
  std::vector<ApicId> ids;
  for (const CpuPlace& place : options.cpus) ids.push_back(place.apic_id);
  return ids;
}

}  // namespace

Machine::Machine(Options options, const Program& program, std::unique_ptr<Backing> backing)
    : options_(std::move(options)),
      program_(program),
      backing_(std::move(backing)),
      queue_(3 * static_cast<uint32_t>(options_.cpus.size())),
      routing_(IdsOf(options_)),
      random_(options_.seed, ~uint64_t{0}),
      chaos_random_(options_.seed, ~uint64_t{1}),
      free_cores_(options_.host_cores),
      now_ns_(kPowerOnNs),
      power_on_ns_(kPowerOnNs),
      limit_ns_(kPowerOnNs + options_.time_limit_ns) {
  choosing_ = !options_.chaos.marked;
  const apic::ApicConfig config = ConfigOf(options_);
  for (uint32_t i = 0; i < options_.cpus.size(); ++i) {
    cpus_.emplace_back(*this, i, options_.cpus[i], config, options_.seed);
  }
}

bool Machine::Reserve(std::string* error) {
  const auto fail = [error](const char* what) {
    *error = std::string("the simulator cannot map ") + what + ": " + strerror(errno) +
             "; use fewer --cpus, or raise the limit of address space (ulimit -v)";
    return false;
  };
  if (backing_ != nullptr) return true;
  backing_ = std::make_unique<Backing>();
  if (!memory().Reserve(options_.memory_bytes)) return fail("the machine's memory");
  if (!backing_->stacks.Reserve(size())) return fail("the CPUs' stacks");
  return true;
}

uint64_t Machine::TicksOf(uint64_t ns) const {
  constexpr uint64_t kNsPerMs = 1'000'000;
  return ns / kNsPerMs * options_.tsc_khz + ns % kNsPerMs * options_.tsc_khz / kNsPerMs;
}

uint64_t Machine::NsOf(uint64_t ticks) const {
  constexpr uint64_t kNsPerMs = 1'000'000;
  const uint64_t khz = options_.tsc_khz;
  return ticks / khz * kNsPerMs + (ticks % khz * kNsPerMs + khz - 1) / khz;
}

void Machine::Record(int32_t cpu, uint64_t ns, abi::TraceEvent event, uint32_t value) {
  host_records_.push_back({cpu, {TicksOf(ns), event, 0, value}});
}

void Machine::Spare(Cpu& cpu, const abi::TraceRecord& record) {
  if (spare_records_ == options_.spare_records) return;
  ++spare_records_;
  cpu.spare_records.push_back(record);
}

void Machine::PowerOn() {
  const bool x2apic = static_cast<abi::ApicMode>(params().apic_mode) == abi::ApicMode::kX2Apic;
  fault_ = params().fault;
  Record(-1, now_ns_, abi::TraceEvent::kVmCreated);
  for (Cpu& cpu : cpus_) {
    // Firmware hands all CPUs over in one mode.
    cpu.apic.Reset(cpu.number == 0, x2apic ? apic::ApicMode::kX2Apic : apic::ApicMode::kXApic);
    cpu.now_ns = now_ns_;
    Publish(cpu);
    Record(static_cast<int32_t>(cpu.number), now_ns_, abi::TraceEvent::kVcpuCreated);
    if (cpu.place.held_ns != 0) HoldCpu(cpu, now_ns_ + cpu.place.held_ns);
  }
  Record(-1, now_ns_, abi::TraceEvent::kGuestLoaded);
  if (chaotic()) PowerOnChaos();
  if (stealing()) PowerOnSteal();
  Launch(cpus_[0]);
}

End Machine::Run() {
  PowerOn();
  while (!ended_) {
    if (by_turns()) EndVainWait();
    if (queue_.NextTime() > limit_ns_) {
      DecideEnd();
      break;
    }
    if (++stats_.events % kEventsPerStopCheck == 0 && options_.stop && options_.stop()) {
      end_ = {.kind = EndKind::kStopped, .cpu = {}, .code = 0, .text = {}};
      break;
    }
    now_ns_ = queue_.NextTime();
    Dispatch(queue_.Pop());
  }
  Record(-1, now_ns_, abi::TraceEvent::kRunEnd);
  return end_;
}

// Nothing is to come before the limit. Where no CPU does anything, nothing will come after it
// either.
void Machine::DecideEnd() {
  bool busy = !queue_.empty();
  for (const Cpu& cpu : cpus_) {
    busy = busy || cpu.state == CpuState::kSpinning || cpu.state == CpuState::kHung;
  }
  if (busy) now_ns_ = limit_ns_;
  end_ = {
      .kind = busy ? EndKind::kTimeLimit : EndKind::kAllHalted, .cpu = {}, .code = 0, .text = {}};
}

void Machine::Dispatch(uint32_t slot) {
  const uint32_t cpus = size();
  if (slot < cpus) return OnResume(cpus_[slot]);
  if (slot < 2 * cpus) return OnTimer(cpus_[slot - cpus]);
  if (slot < 3 * cpus) return OnSlice(cpus_[slot - 2 * cpus]);
  OnMessage(slot);
}

void Machine::OnResume(Cpu& cpu) {
  if (cpu.state == CpuState::kInLatency) return LatencyIsOver(cpu);
  if (cpu.state != CpuState::kExecuting && !cpu.woken) {
    Unlink(cpu);
    cpu.wake = WakeReason::kTime;
    cpu.woken = true;
  }
  if (limited() && !cpu.on_core) return WantCore(cpu);
  if (by_turns()) return BecomeReady(cpu);
  RunFiber(cpu);
}

void Machine::RunFiber(Cpu& cpu) {
  ++stats_.switches;
  cpu.state = CpuState::kExecuting;
  if (cpu.now_ns < now_ns_) cpu.now_ns = now_ns_;
  cpu.fiber.Enter();
}

// The CPU's first instruction after power-up or a SIPI.
void Machine::Launch(Cpu& cpu) {
  if (cpu.stack == nullptr) cpu.stack = backing_->stacks.Get(cpu.number);
  if (cpu.stack == nullptr) {
    ended_ = true;
    end_ = {
        .kind = EndKind::kHostError,
        .cpu = CpuNumber(cpu.number),
        .code = 0,
        .text = std::string("mprotect of the stack's guard page: ") + strerror(errno) +
                "; raise vm.max_map_count to four times the number of CPUs, or use fewer --cpus"};
    return;
  }
  Record(static_cast<int32_t>(cpu.number), now_ns_, abi::TraceEvent::kFirstRun);
  cpu.fiber.Start(cpu.stack, &Machine::FiberMain, &cpu, cpu.number);
  cpu.state = CpuState::kExecuting;
  cpu.irqs = false;
  cpu.interrupted = false;
  cpu.handlers = 0;
  cpu.self = nullptr;
  if (limited()) return WantCore(cpu);
  queue_.Set(ResumeSlot(cpu), now_ns_);
}

void Machine::FiberMain(void* owner) {
  Cpu& cpu = *static_cast<Cpu*>(owner);
  cpu.fiber.Arrived();
  if (cpu.machine.stealing()) cpu.machine.LoseCore(cpu, /*waited=*/true);
  const Program& program = cpu.machine.program_;
  cpu.number == 0 ? program.boot(cpu) : program.ap(cpu, cpu.start_vector);
  cpu.machine.Park(cpu);
}

void Machine::Finish(Cpu& cpu, End end) {
  Sync(cpu);
  if (!ended_) {
    ended_ = true;
    end_ = std::move(end);
  }
  for (;;) cpu.fiber.Leave();
}

void Machine::Exception(Cpu& cpu, uint32_t vector) {
  abi::ResultPage& result = *kernel().result;
  result.fault_cpu = cpu.number;
  result.fault_vector = vector;
  result.status = static_cast<uint32_t>(abi::GuestStatus::kFault);
  if (cpu.self != nullptr) platform::Trace(abi::TraceEvent::kFault, 0, vector);
  Finish(cpu, {.kind = EndKind::kGuestExit, .cpu = CpuNumber(cpu.number), .code = 1, .text = {}});
}

std::string Machine::Doing(uint32_t number) const {
  const Cpu& cpu = cpus_[number];
  const std::string interrupts = cpu.irqs ? ", IF=1" : ", IF=0";
  switch (cpu.state) {
    case CpuState::kWaitForSipi:
      return fault_.kind == abi::Fault::kNoStart && fault_.cpu == number
                 ? "waiting for SIPI (its SIPIs are dropped: --fault=no-start)"
                 : "waiting for SIPI";
    case CpuState::kInLatency:
      return cpu.starting ? "starting after its SIPI" : "taking an INIT";
    case CpuState::kExecuting:
      return "running" + interrupts;
    case CpuState::kSpinning:
      return (cpu.wants_trampoline ? "spinning for the trampoline's lock" : "spinning on a word") +
             interrupts;
    case CpuState::kDelaying:
      return "in a delay loop" + interrupts;
    case CpuState::kImposed:
      return "in a step that the profile charges for" + interrupts;
    case CpuState::kHalted:
      return "halted, IF=1";
    case CpuState::kParked:
      return "halted, IF=0";
    case CpuState::kHung:
      return "in an endless loop, IF=0";
  }
  return "?";
}

}  // namespace sipi::sim
