// The threads of a scenario: made one by one, let go together, told to stop, waited for.
#pragma once

#include "guest/kernel/alloc.h"
#include "guest/kernel/hotplug/hotplug.h"
#include "guest/kernel/sched/wait.h"

namespace sipi {

class Crew;

// One thread of a crew; scenarios derive from it. In the kernel's memory (alloc.h).
struct CrewMember {
  Crew* crew = nullptr;
  uint32_t index = 0;
  void (*body)(CrewMember& self) = nullptr;  // the thread ends where it returns
};

class Crew {
 public:
  // `together`: members wait for Start() before their body, all of them. Otherwise each runs as
  // soon as it is spawned, and whoever spawns them has less and less of a CPU to do so: with many
  // that never sleep, too little.
  explicit Crew(Kernel& kernel, bool together = false) : kernel_(kernel), together_(together) {
    const uint32_t present = kernel.params->cpu_count;
    online_ = AllocateArray<uint32_t>(kernel, present);
    for (uint32_t cpu = 0; cpu < present; ++cpu) {
      if (CpuOnline(kernel, CpuNumber(cpu))) online_[cpus_++] = cpu;
    }
  }

  Kernel& kernel() { return kernel_; }

  // The CPUs that were online when the crew was made: how many, at least one, and the i-th of them,
  // from the first again where these end. Bound threads go there: where a CPU has not come up,
  // its thread would never run, and the crew would wait for it for ever.
  uint32_t cpus() const { return cpus_; }
  uint32_t cpu(uint32_t i) const { return online_[i % cpus_]; }

  // Thread context. `spec` gives name, index, CPU and priority; the rest of it is set here. A CPU
  // that it names is online.
  void Spawn(CrewMember& member, ThreadSpec spec) {
    SIPI_ASSERT(spec.cpu == Thread::kAnyCpu || CpuOnline(kernel_, CpuNumber(spec.cpu)));
    member.crew = this;
    member.index = spec.index;
    spec.function = &Crew::Main;
    spec.argument = &member;
    present_.FetchAdd(1, std::memory_order_seq_cst);
    SpawnThread(kernel_, spec);
  }

  // Members that called AwaitStart(), or all, go on.
  void Start() { started_.CompleteAll(kernel_); }
  void AwaitStart() { started_.Wait(); }

  // Members are to end soon. Any context.
  void Stop() { stop_.Store(1, std::memory_order_seq_cst); }
  bool stopping() { return stop_.Load(std::memory_order_acquire) != 0; }

  // Returns when every member has ended. Thread context, not a member.
  void Join() {
    gone_.Wait([this] { return present_.Load(std::memory_order_seq_cst) == 0; });
  }

 private:
  static void Main(void* argument) {
    auto& member = *static_cast<CrewMember*>(argument);
    Crew& crew = *member.crew;
    if (crew.together_) crew.AwaitStart();
    member.body(member);
    if (crew.present_.FetchAdd(~0u, std::memory_order_seq_cst) == 1) {
      crew.gone_.WakeAll(crew.kernel_);
    }
  }

  Kernel& kernel_;
  const bool together_;
  uint32_t* online_ = nullptr;
  uint32_t cpus_ = 0;
  platform::Atomic<uint32_t> present_{0};
  platform::Atomic<uint32_t> stop_{0};
  Completion started_;
  WaitQueue gone_;
};

// A crew in the kernel's memory.
inline Crew& MakeCrew(Kernel& kernel, bool together = false) {
  return *new (Allocate(kernel, sizeof(Crew))) Crew(kernel, together);
}

}  // namespace sipi
