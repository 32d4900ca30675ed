// Forward progress under a flood of callbacks: one thread queues as fast as it can and must see
// callbacks run in batches of at least kBatch, kBatches times. Linux: rcu_torture_fwd_prog_cr(),
// MIN_FWD_CBS_LAUNDERED and at most eight seconds; here that is how long not a single one may run,
// and only if grace periods have ended meanwhile, since a slow machine is no failure.
#include "guest/kernel/call.h"
#include "guest/kernel/rcu/gp_seq.h"
#include "guest/kernel/sched/time.h"
#include "guest/scenario/torture.h"

namespace sipi::torture {
namespace {

constexpr uint32_t kHeads = 4000;
constexpr uint64_t kBatch = 100;
constexpr uint32_t kBatches = 3;
constexpr uint64_t kBoundUs = 8'000'000;
constexpr uint64_t kGracePeriods = 3;  // one that runs, one for the callbacks, one to spare
constexpr uint32_t kStream = 0x40000;

struct FloodHead : rcu::Head {
  struct Flooder* flooder = nullptr;
  platform::Atomic<uint32_t> in_flight{0};
};

struct Flooder : Actor {
  FloodHead* heads = nullptr;  // [kHeads]
  uint32_t next_head = 0;
  platform::Atomic<uint64_t> run{0};
};

void Ran(rcu::Head& head) {
  auto& flood = static_cast<FloodHead&>(head);
  Flooder& flooder = *flood.flooder;
  CountCallback(*flooder.torture);
  flood.in_flight.Store(0, std::memory_order_release);
  flooder.run.FetchAdd(1, std::memory_order_seq_cst);
}

// Queues one more, unless all are in flight.
void QueueOne(Flooder& self) {
  FloodHead& head = self.heads[self.next_head];
  if (head.in_flight.Load(std::memory_order_acquire) != 0) return platform::DelayUs(20);
  self.next_head = (self.next_head + 1) % kHeads;
  head.in_flight.Store(1, std::memory_order_relaxed);
  QueueCallback(*self.torture, head, Ran);
  ++self.tally.counts.flood_callbacks;
}

// Since when no callback has run.
class Drought {
 public:
  explicit Drought(Kernel& kernel)
      : kernel_(&kernel),
        bound_(platform::DeadlineInUs(kBoundUs)),
        for_ever_(WaitedForEver(kernel)),
        gp_seq_(rcu::GpSeq(kernel)) {}

  // Grace periods end and no callback runs, or not even a grace period has ended for very long.
  bool TooLong() const {
    if (!platform::Expired(bound_)) return false;
    const uint64_t ended = rcu::SeqCounter(rcu::GpSeq(*kernel_) - gp_seq_);
    return ended >= kGracePeriods || platform::Expired(for_ever_);
  }

 private:
  Kernel* kernel_;
  platform::Deadline bound_;
  platform::Deadline for_ever_;
  uint64_t gp_seq_;
};

void FloodOnce(Flooder& self) {
  Kernel& kernel = *self.torture->kernel;
  Drought drought(kernel);
  uint64_t mark = self.run.Load(std::memory_order_seq_cst);
  uint64_t last = mark;
  for (uint32_t batches = 0; batches < kBatches;) {
    if (self.torture->stopping()) return;
    QueueOne(self);
    CondResched();
    const uint64_t run = self.run.Load(std::memory_order_seq_cst);
    if (run != last) {
      last = run;
      drought = Drought(kernel);
    }
    if (run - mark >= kBatch) {
      mark = run;
      ++batches;
    } else if (drought.TooLong()) {
      ++self.tally.counts.flood_failures;
      return Fail(self.tally, abi::TortureCheck::kFlood);
    }
  }
}

void Flood(CrewMember& member) {
  auto& self = static_cast<Flooder&>(member);
  const auto pause_us = static_cast<uint32_t>(self.torture->duration_us / 8);
  while (!self.torture->stopping()) {
    FloodOnce(self);
    RandomSleep(self, pause_us < 1'000'000 ? pause_us : 1'000'000);
    RandomMove(self);
  }
}

}  // namespace

void SpawnFlood(Torture& torture) {
  auto& flooder = MakeActor<Flooder>(torture, kStream, Flood);
  flooder.heads = AllocateArray<FloodHead>(*torture.kernel, kHeads);
  for (uint32_t i = 0; i < kHeads; ++i) flooder.heads[i].flooder = &flooder;
  torture.crew->Spawn(flooder, {.name = "torture_flood"});
}

}  // namespace sipi::torture
