// refscale: what rcu_read_lock() and rcu_read_unlock() cost. In each run every reader goes through
// the same number of empty critical sections on its own CPU; the run's point is the mean over the
// readers.
#include "guest/abi/scenario_results.h"
#include "guest/kernel/rcu/rcu.h"
#include "guest/kernel/rcu/read_side.h"
#include "guest/scenario/crew.h"
#include "guest/scenario/rcu_scenarios.h"

namespace sipi {
namespace {

constexpr uint32_t kLoops = abi::kRefLoops;
constexpr uint32_t kWarmUpLoops = 100;
constexpr uint64_t kPicosecondsPerNs = 1000;

struct Ref {
  Kernel* kernel = nullptr;
  uint32_t readers = 0;
  platform::Atomic<uint32_t> run{0};   // the run that is on; readers wait for the next
  platform::Atomic<uint32_t> left{0};  // readers that are not done with it
  WaitQueue next_run;
  WaitQueue run_done;
};

struct Reader : CrewMember {
  Ref* ref = nullptr;
  uint64_t passed_ns = 0;  // of the last run
};

void Sections(uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    rcu::ReadLock();
    std::atomic_signal_fence(std::memory_order_seq_cst);
    rcu::ReadUnlock();
  }
}

void Read(CrewMember& member) {
  auto& self = static_cast<Reader&>(member);
  Ref& ref = *self.ref;
  for (uint32_t run = 1;; ++run) {
    ref.next_run.Wait(
        [&] { return ref.run.Load(std::memory_order_seq_cst) >= run || self.crew->stopping(); });
    if (self.crew->stopping()) return;
    Sections(kWarmUpLoops);
    const uint64_t begin_ns = platform::NowNs();
    Sections(kLoops);
    self.passed_ns = platform::NowNs() - begin_ns;
    if (ref.left.FetchAdd(~0u, std::memory_order_seq_cst) == 1) {
      ref.run_done.WakeAll(*ref.kernel);
    }
  }
}

}  // namespace

void RunRefScale(Kernel& kernel) {
  const abi::ScenarioKnobs& knobs = kernel.params->scenario_knobs;
  Ref& ref = *AllocateArray<Ref>(kernel, 1);
  ref.kernel = &kernel;
  Crew& crew = MakeCrew(kernel);
  ref.readers = abi::RefReaders(knobs.readers, crew.cpus());
  auto* readers = AllocateArray<Reader>(kernel, ref.readers);
  for (uint32_t i = 0; i < ref.readers; ++i) {
    readers[i].ref = &ref;
    readers[i].body = Read;
    crew.Spawn(readers[i], {.name = "ref_scale/%", .index = i, .cpu = crew.cpu(i)});
  }
  for (uint32_t run = 1; run <= knobs.rounds; ++run) {
    ref.left.Store(ref.readers, std::memory_order_seq_cst);
    ref.run.Store(run, std::memory_order_seq_cst);
    ref.next_run.WakeAll(kernel);
    ref.run_done.Wait([&ref] { return ref.left.Load(std::memory_order_seq_cst) == 0; });
    uint64_t sum_ns = 0;
    for (uint32_t i = 0; i < ref.readers; ++i) sum_ns += readers[i].passed_ns;
    const uint64_t sections = uint64_t{ref.readers} * kLoops;
    platform::Trace(abi::TraceEvent::kRefPoint, static_cast<uint16_t>(run),
                    static_cast<uint32_t>(sum_ns * kPicosecondsPerNs / sections));
  }
  crew.Stop();
  ref.next_run.WakeAll(kernel);
  crew.Join();
}

}  // namespace sipi
