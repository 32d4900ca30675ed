// Schedules by choice: one CPU runs until it blocks or stands back. As CHESS does it (Musuvathi et
// al., "Finding and reproducing Heisenbugs in concurrent programs", OSDI 2008): the steps between
// are taken as they come, preemptions are few and chosen.
//
// `runner_` is the CPU that runs; its next step is in the queue or it is on its fiber. `ready_` are
// the others that could, and stand in no queue. Messages, timers, latencies and delays come in
// their time, which passes as the runner spends it.
#include <algorithm>
#include <utility>

#include "guest/kernel/rcu/state.h"
#include "guest/kernel/sched/run_queue.h"
#include "guest/platform/sim/machine.h"

namespace sipi::sim {
namespace {

// A CPU that executes for so long without blocking polls for what another CPU has to do.
constexpr uint64_t kStepsPerTurn = 4'000;

}  // namespace

// Choices begin or end.
void Machine::TakeMark(uint32_t event_and_target, uint32_t value) {
  if (event_and_target != abi::PackTrace(abi::TraceEvent::kScenario, 0)) return;
  if (value == abi::kMarkSettle) return Settle();
  if (!options_.chaos.marked) return;
  if (value == abi::kMarkChoices) choosing_ = true;
  if (value == abi::kMarkNoChoices) choosing_ = false;
}

// With marks: a word that the marked part is about.
bool Machine::Concerned(const void* word) const {
  if (word == nullptr) return false;
  const auto& guest = *reinterpret_cast<const Kernel*>(backing_->memory.base() + abi::kImageGpa);
  const auto within = [word](const void* begin, uint64_t bytes) {
    return reinterpret_cast<uint64_t>(word) - reinterpret_cast<uint64_t>(begin) < bytes;
  };
  if (within(guest.slots, cpus_.size() * sizeof(abi::CpuSlot))) return true;
  if (guest.rcu == nullptr) return false;
  const std::span<rcu::Node> nodes = guest.rcu->nodes;
  if (within(guest.rcu, sizeof(rcu::State)) || within(nodes.data(), nodes.size_bytes()))
    return true;
  for (uint32_t cpu = 0; cpu < cpus_.size(); ++cpu) {
    const PerCpu& area = guest.percpu(CpuNumber(cpu));
    if (area.rcu != nullptr && within(area.rcu, sizeof(rcu::Data))) return true;
    // Function calls: pushed, taken, or refused.
    RunQueue* const queue = area.run_queue;
    if (queue != nullptr && within(&queue->calls, sizeof queue->calls)) return true;
  }
  return false;
}

// The alternative that the list has here; 0 where it has ended.
uint32_t Machine::Choose(ChoicePoint point) {
  if (!choosing_) return 0;
  const size_t index = choice_points_.size();
  if (index < options_.choices.size()) {
    point.taken = options_.choices[index];
    if (point.taken >= point.alternatives) {
      Violation("the list of choices is another case's: number " + std::to_string(index) + " is " +
                std::to_string(point.taken) + ", of " + std::to_string(point.alternatives));
      point.taken = 0;
    }
  }
  point.time_ns = now_ns_ - power_on_ns_;
  choice_points_.push_back(point);
  return point.taken;
}

void Machine::RunNext(Cpu& next) {
  runner_ = &next;
  turn_steps_ = 0;
  queue_.Set(ResumeSlot(next), now_ns_);
}

// A CPU that could go on.
void Machine::BecomeReady(Cpu& cpu) {
  if (runner_ == nullptr) runner_ = &cpu;
  if (runner_ == &cpu) return RunFiber(cpu);
  MakeReady(cpu);
}

void Machine::MakeReady(Cpu& cpu) {
  const auto at = std::find_if(ready_.begin(), ready_.end(),
                               [&cpu](const Cpu* each) { return each->number > cpu.number; });
  ready_.insert(at, &cpu);
}

// One of those that are ready runs instead of `cpu`, which has blocked.
void Machine::PassTurn(const Cpu& cpu) {
  if (runner_ != &cpu) return;
  runner_ = nullptr;
  if (ready_.empty()) return;
  size_t taken = 0;
  if (by_priority()) {
    taken = HighestReady();
  } else if (ready_.size() > 1) {
    ChoicePoint point;
    point.alternatives = static_cast<uint16_t>(ready_.size());
    point.from = static_cast<uint16_t>(cpu.number);
    taken = Choose(point);
    if (choosing_) choice_points_.back().to = static_cast<uint16_t>(ready_[taken]->number);
  }
  Cpu& next = *ready_[taken];
  ready_.erase(ready_.begin() + static_cast<ptrdiff_t>(taken));
  RunNext(next);
}

// An INIT has come: the CPU does not go on.
void Machine::LoseTurn(Cpu& cpu) {
  std::erase(ready_, &cpu);
  PassTurn(cpu);
}

// The CPU lets another one run, and is ready itself.
void Machine::StandBack(Cpu& cpu) {
  if (ready_.empty()) return;
  now_ns_ = cpu.now_ns;
  PassTurn(cpu);
  MakeReady(cpu);
  cpu.fiber.Leave();
}

// Whoever stood back for what was to come has waited in vain.
void Machine::EndVainWait() {
  if (runner_ != nullptr || ready_.empty() || SomethingIsDue()) return;
  Cpu& next = *ready_.front();
  ready_.erase(ready_.begin());
  RunNext(next);
}

// Something that comes by itself: no CPU's time-out, which nobody can hurry.
bool Machine::SomethingIsDue() const {
  if (queue_.empty()) return false;
  const uint32_t slot = queue_.NextSlot();
  if (slot >= FirstMessageSlot()) return true;
  if (slot >= size()) return false;
  const Cpu& cpu = cpus_[slot];
  return cpu.woken || cpu.state == CpuState::kInLatency || cpu.state == CpuState::kDelaying ||
         cpu.state == CpuState::kImposed;
}

bool Machine::TurnIsLong() { return ++turn_steps_ > kStepsPerTurn; }

// Before a step that others can see.
void Machine::MayStandBack(Cpu& cpu) {
  const void* const touched = std::exchange(touched_, nullptr);
  if (ended_ || runner_ != &cpu) return;
  if (TurnIsLong()) return StandBack(cpu);
  if (!choosing_ || preemptions_ == options_.chaos.preemptions) return;
  if (options_.chaos.marked && !Concerned(touched)) return;
  const bool due = SomethingIsDue();
  if (ready_.empty() && !due) return;
  ChoicePoint point;
  point.kind = ChoicePoint::Kind::kPreempt;
  point.alternatives = static_cast<uint16_t>(1 + ready_.size() + (due ? 1 : 0));
  point.from = static_cast<uint16_t>(cpu.number);
  point.to = point.from;
  const uint64_t before_ns = now_ns_;
  now_ns_ = std::max(now_ns_, cpu.now_ns);
  const uint32_t taken = Choose(point);
  if (taken == 0) {
    now_ns_ = before_ns;
    return;
  }
  ++preemptions_;
  if (taken > ready_.size()) {
    choice_points_.back().waits = true;
    runner_ = nullptr;
  } else {
    Cpu& next = *ready_[taken - 1];
    choice_points_.back().to = static_cast<uint16_t>(next.number);
    ready_.erase(ready_.begin() + static_cast<ptrdiff_t>(taken - 1));
    RunNext(next);
  }
  MakeReady(cpu);
  cpu.fiber.Leave();
}

}  // namespace sipi::sim
