// Fibers: the simulated CPUs' threads of control, all on one thread of the host. A fiber is on its
// CPU's own stack, or on that of a kernel thread which the CPU runs.
//
// A stack is kStackBytes long and aligned to that, so that the running CPU is found from the stack
// pointer alone: its address stands in the stack's last word, written anew at each switch. So there
// is neither a global nor a thread-local variable, and any number of machines run on any number of
// host threads. The lowest page is a guard. Pages are touched as they are used: an idle CPU costs
// two.
//
// A fiber may be given up at any switch and started anew (INIT does that to a CPU). Nothing on its
// stack is destroyed then, so nothing on it may own anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "guest/platform/sim/suspended.h"

namespace sipi::sim {

inline constexpr size_t kStackBytes = 64 * 1024;

// What the stack's last word points to; null nowhere.
inline void* FiberOwner() {
  uintptr_t sp;
  asm("movq %%rsp, %0" : "=r"(sp));
  return *reinterpret_cast<void**>((sp | (kStackBytes - 1)) + 1 - sizeof(void*));
}

// Stacks of one machine, in mappings of kStacksPerChunk. The first ones are the CPUs', those behind
// them threads'.
class StackPool {
 public:
  StackPool() = default;
  ~StackPool();
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;

  size_t size() const { return chunks_.size() * kStacksPerChunk; }
  // Reserves address space for at least `count` stacks. False, with errno set: there is none.
  bool Reserve(size_t count);
  // The lowest address of a stack, its guard in place; the pool grows to have it. Null, with errno
  // set, if the host refuses the memory or the guard: each guard takes an entry of the process's
  // memory map (vm.max_map_count).
  std::byte* Get(size_t index);

 private:
  static constexpr size_t kStacksPerChunk = 64;
  struct Chunk {
    std::byte* mapped = nullptr;
    std::byte* stacks = nullptr;
    uint64_t guarded = 0;  // bit set
  };
  std::vector<Chunk> chunks_;
};

class Fiber {
 public:
  // Puts the fiber at the beginning of `entry(owner)`, on `stack`. Precondition: it does not run.
  // `color` staggers the stacks' tops, which would else meet in the same sets of every cache.
  void Start(std::byte* stack, void (*entry)(void*), void* owner, size_t color);

  // Scheduler: runs the fiber until it leaves.
  void Enter();
  // The fiber: back to the scheduler, until it is entered again.
  void Leave();
  // First thing that `entry` does.
  void Arrived();
  // The fiber: leaves its stack for another one, which belongs to `owner` from now on. Comes back
  // when some fiber switches to `from`.
  void SwitchStack(Suspended& from, const Suspended& to, void* owner);
  // A stack on which the first switch calls entry(argument), which calls ThreadArrived() first.
  static Suspended Prepare(std::byte* stack, void (*entry)(void*), void* argument, size_t color);
  static void ThreadArrived();

 private:
  std::byte* stack_ = nullptr;
  void* sp_ = nullptr;
  void* scheduler_sp_ = nullptr;
  // For the sanitizers, which must know on which stack the thread stands.
  void* fake_stack_ = nullptr;
  void* scheduler_fake_stack_ = nullptr;
  const void* scheduler_stack_ = nullptr;
  size_t scheduler_stack_bytes_ = 0;
};

}  // namespace sipi::sim
