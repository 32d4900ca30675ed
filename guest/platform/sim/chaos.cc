// Exploration: schedules, injected faults, and what must hold after every step.
#include <algorithm>
#include <cstring>
#include <utility>

#include "guest/platform/sim/machine.h"

namespace sipi::sim {
namespace {

constexpr uint64_t kStepNs = 20;  // of the fastest CPU, with Schedule::kSlowdowns
constexpr uint32_t kRanks = 3;    // what is further down is as slow as the last

constexpr Rate Chaos::*kFaults[] = {
    &Chaos::lost_init,   &Chaos::lost_sipi,      &Chaos::late_ap, &Chaos::dead_ap,
    &Chaos::delayed_ipi, &Chaos::duplicated_ipi, &Chaos::stall,   &Chaos::late_timer,
    &Chaos::frozen_ap,   &Chaos::frozen,
};
// The bound of a handshake once the faults have ended: nobody who is late then is so for longer,
// even if it is late because of several others. Nor is a schedule slow enough for it.
constexpr uint32_t kSettledTimeoutMs = 60'000;
constexpr uint32_t kMaxFreezes = 2;  // anywhere: what waits for ever has a bound, too

bool Alive(const Cpu& cpu) {
  return cpu.state != CpuState::kWaitForSipi && cpu.state != CpuState::kInLatency;
}

uint64_t SlownessOf(uint32_t rank, uint32_t slowdown) {
  uint64_t ns = kStepNs;
  for (uint32_t i = 0; i < std::min(rank, kRanks); ++i) ns *= slowdown;
  return ns;
}

}  // namespace

bool Machine::Strikes(Rate rate) {
  switch (rate) {
    case Rate::kOff:
      return false;
    case Rate::kRare:
      return chaos_random_.Below(256) == 0;
    case Rate::kWild:
      return chaos_random_.Below(8) == 0;
  }
  return false;
}

void Machine::PowerOnChaos() {
  const Chaos& chaos = options_.chaos;
  if (chaos.schedule == Schedule::kPct) return PowerOnPct();
  if (chaos.schedule != Schedule::kSlowdowns) return;
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < size(); ++i) order.push_back(i);
  for (uint32_t i = size(); i > 1; --i) std::swap(order[i - 1], order[chaos_random_.Below(i)]);
  for (uint32_t rank = 0; rank < size(); ++rank) {
    cpus_[order[rank]].slowness = SlownessOf(rank, chaos.slowdown);
  }
  for (uint32_t i = 0; i < chaos.change_points; ++i) {
    change_points_.push_back(1 + chaos_random_.Below(chaos.expected_steps));
  }
}

// Chaos::rcu_delay, before an access or an interrupt command.
void Machine::MayLinger(Cpu& cpu, const void* touched) {
  const Rate rate = options_.chaos.rcu_delay;
  if (rate == Rate::kOff) return;
  const bool interrupts = touched == nullptr;  // these are far fewer
  const uint64_t one_in = (rate == Rate::kWild ? 32u : 128u) / (interrupts ? 4u : 1u);
  if (chaos_random_.Below(one_in) != 0 || !(interrupts || Concerned(touched))) return;
  cpu.now_ns += chaos_random_.Below(uint64_t{1} << chaos_random_.Below(23));
}

// Before each step that others can see.
void Machine::Perturb(Cpu& cpu) {
  const Chaos& chaos = options_.chaos;
  ++steps_;
  // Stores stay in the buffer as long as they may: the other extreme is a run without one.
  if (chosen()) return MayStandBack(cpu);
  const void* const touched = std::exchange(touched_, nullptr);
  if (touched != nullptr && !by_turns()) MayLinger(cpu, touched);
  if (!cpu.stores.empty() && chaos_random_.Below(8) == 0) DrainStores(cpu, cpu.stores.size() - 1);
  switch (chaos.schedule) {
    case Schedule::kTimed:
    case Schedule::kChosen:
    case Schedule::kPct:
      break;
    case Schedule::kRandom:
      if (chaos_random_.Below(8) == 0) {
        cpu.now_ns += chaos_random_.Below(uint64_t{1} << chaos_random_.Below(15));
      }
      break;
    case Schedule::kSlowdowns:
      cpu.now_ns += cpu.slowness;
      if (std::find(change_points_.begin(), change_points_.end(), steps_) != change_points_.end()) {
        cpu.slowness = SlownessOf(size(), chaos.slowdown);
      }
      break;
  }
  // A step is one of hundreds, so that even "wild" must be seldom.
  if (chaos.stall != Rate::kOff && chaos_random_.Below(8) == 0 && Strikes(Rate::kRare)) {
    const uint64_t longest_ns = chaos.stall == Rate::kWild ? 20'000'000 : 2'000'000;
    StandStill(cpu, chaos_random_.Below(longest_ns));
  }
  if (chaos.frozen != Rate::kOff && freezes_ < kMaxFreezes && chaos_random_.Below(8) == 0 &&
      Strikes(Rate::kRare) && (chaos.frozen == Rate::kWild || chaos_random_.Below(8) == 0)) {
    ++freezes_;
    for (Cpu& other : cpus_) other.harmed = true;
    Freeze(cpu);
  }
  const bool has_scheduler = cpu.self != nullptr && cpu.self->run_queue != nullptr;
  if (chaos.resched != Rate::kOff && has_scheduler && chaos_random_.Below(8) == 0 &&
      Strikes(chaos.resched)) {
    cpu.apic.Accept(Vector(abi::kRescheduleVector));
    cpu.attention = true;
  }
  if (by_priority()) FollowPriorities(cpu);
}

// Off its core for so long. Where CPUs take turns another one runs meanwhile.
void Machine::StandStill(Cpu& cpu, uint64_t ns) {
  const uint64_t begin_ns = cpu.now_ns;
  cpu.now_ns += ns;
  if (!by_turns() || ended_ || runner_ != &cpu) return;
  queue_.Set(ResumeSlot(cpu), cpu.now_ns);
  now_ns_ = std::max(now_ns_, begin_ns);
  PassTurn(cpu);
  cpu.fiber.Leave();
}

void Machine::Violation(std::string text) {
  if (ended_) return;
  ended_ = true;
  end_ = {.kind = EndKind::kViolation, .cpu = {}, .code = 0, .text = std::move(text)};
}

void Machine::CheckStack(const Cpu& cpu) {
  for (const Cpu& other : cpus_) {
    if (other.number == cpu.number || !Alive(other) || other.self != cpu.self) continue;
    Violation("CPU " + std::to_string(cpu.number) + " runs on the stack of CPU " +
              std::to_string(other.number));
  }
}

void Machine::CheckStore(const void* word, uint64_t value) {
  const auto slots = reinterpret_cast<uint64_t>(kernel().slots);
  const uint64_t offset = reinterpret_cast<uint64_t>(word) - slots;
  static_assert(offsetof(abi::CpuSlot, sync_state) == 0);
  if (offset >= size() * sizeof(abi::CpuSlot) || offset % sizeof(abi::CpuSlot) != 0) return;
  uint32_t before = 0;
  std::memcpy(&before, word, sizeof before);
  const auto from = static_cast<abi::SyncState>(before);
  const auto to = static_cast<abi::SyncState>(value);
  if (abi::SyncTransitionAllowed(from, to)) return;
  Violation("handshake of CPU " + std::to_string(offset / sizeof(abi::CpuSlot)) + ": " +
            abi::Name(from) + " to " + abi::Name(to));
}

// A SIPI is being taken.
void Machine::CheckStart(Cpu& cpu) {
  if (++cpu.starts_since_init > 1 && cpu.self != nullptr && Alive(cpu)) {
    Violation("a SIPI restarts CPU " + std::to_string(cpu.number) + ", which runs");
  }
}

// A function call to a CPU that runs nothing any more, or nothing yet.
void Machine::CheckCall(const Cpu& sender, uint32_t target, const apic::Icr& icr) {
  const Cpu& called = cpus_[target];
  const bool call =
      icr.mode == apic::DeliveryMode::kFixed && icr.vector.value == abi::kCallSingleVector;
  if (!call || (Alive(called) && called.state != CpuState::kParked)) return;
  Violation("CPU " + std::to_string(sender.number) + " interrupts CPU " + std::to_string(target) +
            " for a function call, which is dead");
}

// The CPU stands still for longer than it is waited for. One in four goes on about when it is given
// up: that is when things go wrong.
void Machine::Freeze(Cpu& cpu) {
  constexpr uint64_t kNsPerMs = 1'000'000;
  constexpr uint64_t kAboutNs = 200'000;
  const uint64_t timeout_ns = params().knobs.handshake_timeout_ms * kNsPerMs;
  const uint64_t range_ns = chaos_random_.Below(4) == 0 ? kAboutNs : timeout_ns / 2;
  DrainStores(cpu, 0);  // it is off its core: no buffer holds anything for so long
  cpu.harmed = true;
  StandStill(cpu, timeout_ns + chaos_random_.Below(range_ns));
}

// An AP dies or freezes at a step of its own, where it holds no lock and nobody counts on it yet:
// one that has been seen online and then hangs takes every kernel down with it.
void Machine::MayDie(Cpu& cpu, uint32_t event_and_target, uint32_t value) {
  const Chaos& chaos = options_.chaos;
  if (cpu.number == 0 || (chaos.dead_ap == Rate::kOff && chaos.frozen_ap == Rate::kOff)) return;
  switch (static_cast<abi::TraceEvent>(event_and_target & 0xffff)) {
    case abi::TraceEvent::kFirstInstruction:
    case abi::TraceEvent::kLongMode:
    case abi::TraceEvent::kAlive:
    case abi::TraceEvent::kReleased:
      break;
    case abi::TraceEvent::kCpuhpEnter:
      if (event_and_target >> 16 == cpu.number &&
          value <= static_cast<uint32_t>(abi::CpuhpState::kApOnline)) {
        break;
      }
      return;
    default:
      return;
  }
  const abi::CpuSlot* const slot = cpu.self->slot;
  const bool counted_on = slot != nullptr && (slot->online | slot->call_requested) != 0;
  if (counted_on) return;
  if (Strikes(chaos.dead_ap)) Hang(cpu);
  if (Strikes(chaos.frozen_ap)) Freeze(cpu);
}

// The faults end here. What must hold despite them is looked at now; from here on every CPU that
// does not hang must come online when the guest tries. Where the guest cannot know that only an
// INIT helps (the CPU halts for good and could not say so: its INIT was lost, or it does not know
// who it is), the machine's owner sends it.
void Machine::Settle() {
  kernel().result->trampoline_lock = trampoline_.locked() ? 1 : 0;
  if (options_.before_settling) {
    std::string wrong = options_.before_settling();
    if (!wrong.empty()) return Violation(std::move(wrong));
  }
  Chaos& chaos = options_.chaos;
  for (Rate Chaos::*const rate : kFaults) chaos.*rate = Rate::kOff;
  fault_ = {};
  auto& shown = *reinterpret_cast<abi::BootParams*>(memory().base() + abi::kParamsGpa);
  shown.fault = {};
  shown.knobs.handshake_timeout_ms = kSettledTimeoutMs;
  choosing_ = false;
  settled_ = true;
  for (Cpu& cpu : cpus_) {
    cpu.harmed = cpu.hung;
    if (cpu.state == CpuState::kParked) MayNeedInit(cpu);
  }
}

// The faults have ended, and the CPU halts for good: does it need the machine's owner?
void Machine::MayNeedInit(const Cpu& cpu) {
  if (cpu.self != nullptr && !cpu.init_lost) return;
  Enqueue({cpu.number, apic::DeliveryMode::kInit, {}}, std::max(now_ns_, cpu.last_message_ns));
}

// A kick is an INIT and SIPIs, or SIPIs alone. One of them is enough: only where all were lost has
// the CPU an excuse.
bool Machine::LosesStartup(uint32_t target, apic::DeliveryMode mode) {
  const bool init = mode == apic::DeliveryMode::kInit;
  if (!init && mode != apic::DeliveryMode::kStartUp) return false;
  Cpu& cpu = cpus_[target];
  const uint32_t in_kick = params().knobs.kick.sipi_count;
  if (init || cpu.startups_of_kick == in_kick) cpu.startups_of_kick = cpu.startups_lost = 0;
  if (!init) ++cpu.startups_of_kick;
  if (!Strikes(init ? options_.chaos.lost_init : options_.chaos.lost_sipi)) return false;
  ++(init ? stats_.inits_sent : stats_.sipis_sent);
  ++stats_.startup_dropped;
  if (init && Alive(cpu)) cpu.init_lost = cpu.harmed = true;
  if (!init && ++cpu.startups_lost == in_kick) cpu.harmed = true;
  Record(static_cast<int32_t>(target), now_ns_,
         init ? abi::TraceEvent::kInitDropped : abi::TraceEvent::kSipiDropped);
  return true;
}

// When a message arrives. INITs and SIPIs to one CPU keep their order: on hardware they do too.
uint64_t Machine::ArrivalNs(Cpu& target, apic::DeliveryMode mode, uint64_t planned_ns) {
  uint64_t arrival_ns = planned_ns;
  if (Strikes(options_.chaos.delayed_ipi)) arrival_ns += chaos_random_.Below(200'000);
  if (mode == apic::DeliveryMode::kInit || mode == apic::DeliveryMode::kStartUp) {
    arrival_ns = std::max(arrival_ns, target.last_message_ns);
    target.last_message_ns = arrival_ns;
  }
  return arrival_ns;
}

bool Machine::Buffer(Cpu& cpu, void* word, uint32_t bytes, uint64_t value, bool fenced) {
  if (!options_.chaos.store_buffer) return false;
  if (fenced) {
    DrainStores(cpu, 0);
    return false;
  }
  if (cpu.stores.full()) DrainStores(cpu, cpu.stores.size() - 1);
  cpu.stores.Push({word, bytes, value});
  return true;
}

// Lets the oldest stores become visible until `leave` are left.
void Machine::DrainStores(Cpu& cpu, size_t leave) {
  while (cpu.stores.size() > leave) {
    const StoreBuffer::Entry entry = cpu.stores.Pop();
    CheckStore(entry.word, entry.value);
    std::memcpy(entry.word, &entry.value, entry.bytes);
    Stored(cpu, entry.word);
  }
}

}  // namespace sipi::sim
