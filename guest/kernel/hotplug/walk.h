// One walk over a section of the step table, up or down, with its rollback: a step that fails has
// failed as a whole; those that this walk has done are undone in reverse order, each once, and the
// CPU is where it was. Templates over what a step does, so that they run on the host as well.
//
// Ops:
//   void Enter(CpuhpState)          the CPU is in this state from now on
//   Error Startup(const CpuhpStep&), Error Teardown(const CpuhpStep&)
//   void Failed(const CpuhpStep&, Error)
//   void UndoFailed(const CpuhpStep&, Error)   a rollback has no rollback: the walk ends here,
//                                              with its own error, and the CPU is nowhere
#pragma once

#include <span>

#include "guest/kernel/cpuhp.h"

namespace sipi {

using StepSpan = std::span<const CpuhpStep>;

// The state below step `index`: the one before it, but not below `floor`.
inline abi::CpuhpState StateBefore(StepSpan steps, size_t index, abi::CpuhpState floor) {
  const abi::CpuhpState before = index == 0 ? abi::CpuhpState::kOffline : steps[index - 1].state;
  return before > floor ? before : floor;
}

// Startups of the states above `from` up to `target`, both within the section.
template <class Ops>
Error WalkUp(StepSpan steps, abi::CpuhpState from, abi::CpuhpState target, Ops& ops) {
  size_t first = 0;
  while (first < steps.size() && steps[first].state <= from) ++first;
  for (size_t i = first; i < steps.size() && steps[i].state <= target; ++i) {
    ops.Enter(steps[i].state);
    const Error error = ops.Startup(steps[i]);
    if (error == Error::kNone) continue;
    ops.Failed(steps[i], error);
    ops.Enter(StateBefore(steps, i, from));
    for (size_t k = i; k-- > first;) {
      const Error undo = ops.Teardown(steps[k]);
      if (undo != Error::kNone) {
        ops.UndoFailed(steps[k], undo);
        return error;
      }
      ops.Enter(StateBefore(steps, k, from));
    }
    return error;
  }
  return Error::kNone;
}

// Teardowns of the states from `from` down to above `target`.
template <class Ops>
Error WalkDown(StepSpan steps, abi::CpuhpState from, abi::CpuhpState target, Ops& ops) {
  size_t last = steps.size();
  while (last > 0 && steps[last - 1].state > from) --last;
  for (size_t i = last; i-- > 0 && steps[i].state > target;) {
    const Error error = ops.Teardown(steps[i]);
    if (error == Error::kNone) {
      ops.Enter(StateBefore(steps, i, target));
      continue;
    }
    ops.Failed(steps[i], error);
    for (size_t k = i + 1; k < last; ++k) {
      ops.Enter(steps[k].state);
      const Error undo = ops.Startup(steps[k]);
      if (undo != Error::kNone) {
        ops.UndoFailed(steps[k], undo);
        return error;
      }
    }
    if (last > i + 1 && from > steps[last - 1].state) ops.Enter(from);
    return error;
  }
  return Error::kNone;
}

}  // namespace sipi
