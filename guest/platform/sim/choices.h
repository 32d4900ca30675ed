// Schedules by choice (Schedule::kChosen): one CPU runs at a time, and at each point where another
// one could, the next of a list of numbers says which. std only; no state; any thread.
#pragma once

#include <cstdint>

namespace sipi::sim {

// A point where the run could have gone another way.
struct ChoicePoint {
  enum class Kind : uint8_t {
    kNext,     // the CPU that ran has blocked: which of those that are ready runs next
    kPreempt,  // 0: the CPU that runs goes on; else it stands back, and one preemption is spent
  };
  Kind kind = Kind::kNext;
  bool waits = false;         // it stands back for a CPU that something in time makes ready
  uint16_t taken = 0;         // < alternatives
  uint16_t alternatives = 0;  // at least 2
  uint16_t from = 0;          // the CPU that ran
  uint16_t to = 0;            // the CPU that runs next
  uint64_t time_ns = 0;       // since power-on
};

}  // namespace sipi::sim
