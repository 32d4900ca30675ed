// rcu_barrier() under torture: threads queue one callback each, wherever they are; when the barrier
// returns, each must have run.
#include "guest/kernel/sched/time.h"
#include "guest/scenario/torture.h"

namespace sipi::torture {
namespace {

constexpr uint32_t kMaxCallers = 8;
constexpr uint32_t kStream = 0x30000;

struct Barriers : Actor {
  uint32_t callers = 0;
  platform::Atomic<uint32_t> round{0};
  platform::Atomic<uint32_t> left{0};  // callers that have not queued theirs
  platform::Atomic<uint32_t> run{0};   // callbacks of this round that have run
  platform::Atomic<uint32_t> over{0};  // callers may end
  WaitQueue next_round;
  WaitQueue all_queued;
};

struct CallerHead : rcu::Head {
  Barriers* barriers = nullptr;
};

void CountRun(rcu::Head& head) {
  Barriers& barriers = *static_cast<CallerHead&>(head).barriers;
  CountCallback(*barriers.torture);
  barriers.run.FetchAdd(1, std::memory_order_seq_cst);
}

struct Caller : Actor {
  CallerHead head;
};

void Call(CrewMember& member) {
  auto& self = static_cast<Caller&>(member);
  Barriers& barriers = *self.head.barriers;
  for (uint32_t round = 1;; ++round) {
    barriers.next_round.Wait([&] {
      return barriers.round.Load(std::memory_order_seq_cst) >= round ||
             barriers.over.Load(std::memory_order_seq_cst) != 0;
    });
    if (barriers.over.Load(std::memory_order_seq_cst) != 0) return;
    if (self.random.OneIn(2)) RandomMove(self);
    QueueCallback(*self.torture, self.head, CountRun);
    if (barriers.left.FetchAdd(~0u, std::memory_order_seq_cst) == 1) {
      barriers.all_queued.WakeAll(*self.torture->kernel);
    }
  }
}

void TestBarrier(Barriers& self, uint32_t round) {
  Kernel& kernel = *self.torture->kernel;
  self.run.Store(0, std::memory_order_seq_cst);
  self.left.Store(self.callers, std::memory_order_seq_cst);
  self.round.Store(round, std::memory_order_seq_cst);
  self.next_round.WakeAll(kernel);
  self.all_queued.Wait([&self] { return self.left.Load(std::memory_order_seq_cst) == 0; });
  rcu::Barrier(kernel);
  ++self.tally.counts.barrier_tries;
  if (self.run.Load(std::memory_order_seq_cst) == self.callers) return;
  ++self.tally.counts.barrier_failures;
  Fail(self.tally, abi::TortureCheck::kBarrier);
  // The heads are used again.
  while (self.run.Load(std::memory_order_seq_cst) != self.callers) SleepJiffies(1);
}

void TestBarriers(CrewMember& member) {
  auto& self = static_cast<Barriers&>(member);
  for (uint32_t round = 1; !self.torture->stopping(); ++round) {
    TestBarrier(self, round);
    RandomSleep(self, 5000);
  }
  self.over.Store(1, std::memory_order_seq_cst);
  self.next_round.WakeAll(*self.torture->kernel);
}

}  // namespace

void SpawnBarrierTesters(Torture& torture) {
  auto& barriers = MakeActor<Barriers>(torture, kStream, TestBarriers);
  barriers.callers = torture.cpus < kMaxCallers ? torture.cpus : kMaxCallers;
  for (uint32_t i = 0; i < barriers.callers; ++i) {
    auto& caller = MakeActor<Caller>(torture, kStream + 1 + i, Call);
    caller.head.barriers = &barriers;
    torture.crew->Spawn(caller, {.name = "torture_cbs/%", .index = i});
  }
  torture.crew->Spawn(barriers, {.name = "torture_barrier"});
}

}  // namespace sipi::torture
