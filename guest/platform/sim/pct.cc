// Schedules by priority, as PCT has them (Burckhardt et al., "A randomized scheduler with
// probabilistic guarantees of finding bugs", ASPLOS 2010): of the CPUs that could go on, that of
// the highest priority does, alone, until it blocks or a higher one can. Priorities are a random
// permutation; at each of a few random steps the CPU that takes it gets one that is lower than all
// of these, and the step's own. CPUs take turns as with chosen schedules (choices.cc).
#include <algorithm>

#include "guest/platform/sim/machine.h"

namespace sipi::sim {

void Machine::PowerOnPct() {
  const uint32_t points = options_.chaos.change_points;
  std::vector<int64_t> priorities;
  for (uint32_t i = 0; i < size(); ++i) priorities.push_back(1 + int64_t{i});
  for (uint32_t i = size(); i > 1; --i) {
    std::swap(priorities[i - 1], priorities[chaos_random_.Below(i)]);
  }
  for (uint32_t i = 0; i < size(); ++i) cpus_[i].priority = priorities[i];
  for (uint32_t i = 0; i < points; ++i) {
    change_points_.push_back(1 + chaos_random_.Below(options_.chaos.expected_steps));
  }
  lowest_priority_ = -int64_t{points};
}

size_t Machine::HighestReady() const {
  const auto lower = [](const Cpu* a, const Cpu* b) { return a->priority < b->priority; };
  return static_cast<size_t>(std::max_element(ready_.begin(), ready_.end(), lower) -
                             ready_.begin());
}

// Before a step that others can see.
void Machine::FollowPriorities(Cpu& cpu) {
  if (ended_ || runner_ != &cpu) return;
  const auto point = std::find(change_points_.begin(), change_points_.end(), steps_);
  if (point != change_points_.end()) cpu.priority = change_points_.begin() - point;
  // One that polls must not keep the CPU that it polls for from running.
  if (TurnIsLong()) cpu.priority = --lowest_priority_;
  if (!ready_.empty() && ready_[HighestReady()]->priority > cpu.priority) StandBack(cpu);
}

}  // namespace sipi::sim
