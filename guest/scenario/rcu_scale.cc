// rcuscale: each writer waits for one grace period after the other. A writer's measurements count
// from kScaleBegin, when all writers run, to kScaleEnd, when each has enough; a measurement is what
// lies between kSyncBegin and kSyncEnd on the writer's CPU. RCU traces these two itself; with
// gp_async they are traced here, around queueing a callback, and there kScaleEnd comes after the
// callbacks.
//
// Nobody measures before all run: an asynchronous writer never sleeps, so that it would keep its
// CPU from whoever is to start the others, and its ring would be full by then.
#include "guest/kernel/rcu/gp_seq.h"
#include "guest/kernel/rcu/rcu.h"
#include "guest/kernel/rcu/read_side.h"
#include "guest/kernel/sched/time.h"
#include "guest/scenario/crew.h"
#include "guest/scenario/rcu_scenarios.h"

namespace sipi {
namespace {

using abi::kScaleAsyncMax;

// Where one writer is slow, the others do not go on for ever: their rings are not endless.
constexpr uint32_t kMeasurementsFactor = 4;
constexpr uint32_t kReadsPerLook = 256;
// Between them a reader keeps its CPU busy otherwise. Sections alone would take no time at all on a
// machine whose time passes by what is waited for and what CPUs share: there it would never end.
constexpr uint32_t kReaderPauseUs = 5;

struct Scale {
  Kernel* kernel = nullptr;
  uint32_t writers = 0;
  uint32_t wanted = 0;  // measurements of each writer
  platform::Atomic<uint32_t> started{0};
  platform::Atomic<uint32_t> satisfied{0};  // writers that have enough
  WaitQueue all_started;
  WaitQueue all_satisfied;

  const abi::ScenarioKnobs& knobs() const { return kernel->params->scenario_knobs; }
};

struct AsyncHead : rcu::Head {
  platform::Atomic<uint32_t> in_flight{0};
};

struct Member : CrewMember {
  Scale* scale = nullptr;
  AsyncHead* heads = nullptr;  // [kScaleAsyncMax], with gp_async
  uint32_t next_head = 0;
};

void AsyncDone(rcu::Head& head) {
  static_cast<AsyncHead&>(head).in_flight.Store(0, std::memory_order_release);
}

// Queues a callback; where too many are in flight, after all of them have run.
void QueueAsync(Member& self) {
  Kernel& kernel = *self.scale->kernel;
  AsyncHead& head = self.heads[self.next_head];
  self.next_head = (self.next_head + 1) % kScaleAsyncMax;
  const auto kind = static_cast<uint32_t>(abi::GracePeriodKind::kNone);
  platform::Trace(abi::TraceEvent::kSyncBegin, 0, kind);
  // The oldest of the last kScaleAsyncMax.
  if (head.in_flight.Load(std::memory_order_acquire) != 0) rcu::Barrier(kernel);
  head.in_flight.Store(1, std::memory_order_relaxed);
  rcu::Call(kernel, head, AsyncDone);
  platform::Trace(abi::TraceEvent::kSyncEnd, 0, kind);
}

void Measure(Member& self) {
  Kernel& kernel = *self.scale->kernel;
  if (self.scale->knobs().async != 0) {
    QueueAsync(self);
  } else if (self.scale->knobs().expedited != 0) {
    rcu::SynchronizeExpedited(kernel);
  } else {
    rcu::Synchronize(kernel);
  }
  CondResched();
}

// Grace periods that have ended so far, of the kind that is measured.
uint32_t Batches(const Scale& scale) {
  Kernel& kernel = *scale.kernel;
  return static_cast<uint32_t>(rcu::SeqCounter(scale.knobs().expedited != 0
                                                   ? rcu::ExpSeq(kernel) - rcu::kInitialExpSeq
                                                   : rcu::GpSeq(kernel) - rcu::kInitialGpSeq));
}

void Write(CrewMember& member) {
  auto& self = static_cast<Member&>(member);
  Scale& scale = *self.scale;
  const auto index = static_cast<uint16_t>(self.index);
  const auto all = [&scale](platform::Atomic<uint32_t>& count) {
    return count.Load(std::memory_order_seq_cst) >= scale.writers;
  };
  self.crew->AwaitStart();
  scale.started.FetchAdd(1, std::memory_order_seq_cst);
  if (all(scale.started)) scale.all_started.WakeAll(*scale.kernel);
  scale.all_started.Wait([&] { return all(scale.started); });
  platform::Trace(abi::TraceEvent::kScaleBegin, index, Batches(scale));
  for (uint32_t done = 0; !all(scale.satisfied);) {
    if (done >= scale.wanted * kMeasurementsFactor) {
      scale.all_satisfied.Wait([&] { return all(scale.satisfied); });
      break;
    }
    Measure(self);
    if (++done != scale.wanted) continue;
    scale.satisfied.FetchAdd(1, std::memory_order_seq_cst);
    if (all(scale.satisfied)) scale.all_satisfied.WakeAll(*scale.kernel);
  }
  if (self.heads != nullptr) rcu::Barrier(*scale.kernel);
  platform::Trace(abi::TraceEvent::kScaleEnd, index, Batches(scale));
}

void Read(CrewMember& member) {
  while (!member.crew->stopping()) {
    for (uint32_t i = 0; i < kReadsPerLook; ++i) {
      rcu::ReadLock();
      std::atomic_signal_fence(std::memory_order_seq_cst);
      rcu::ReadUnlock();
    }
    platform::DelayUs(kReaderPauseUs);
    CondResched();
  }
}

Member& MakeMember(Scale& scale, void (*run)(CrewMember&)) {
  Member& member = *AllocateArray<Member>(*scale.kernel, 1);
  member.scale = &scale;
  member.body = run;
  return member;
}

}  // namespace

void RunRcuScale(Kernel& kernel) {
  Scale& scale = *AllocateArray<Scale>(kernel, 1);
  scale.kernel = &kernel;
  scale.wanted = scale.knobs().measurements != 0 ? scale.knobs().measurements : 1;
  Crew& readers = MakeCrew(kernel);
  for (uint32_t i = 0; i < scale.knobs().readers; ++i) {
    readers.Spawn(MakeMember(scale, Read),
                  {.name = "rcu_scale_rd/%", .index = i, .cpu = readers.cpu(i)});
  }
  Crew& writers = MakeCrew(kernel);
  // One on a CPU, whose events are its own; those that have none do not start.
  const uint32_t asked = abi::WritersOf(scale.knobs().writers, writers.cpus());
  scale.writers = asked < writers.cpus() ? asked : writers.cpus();
  for (uint32_t i = 0; i < scale.writers; ++i) {
    Member& writer = MakeMember(scale, Write);
    if (scale.knobs().async != 0) writer.heads = AllocateArray<AsyncHead>(kernel, kScaleAsyncMax);
    writers.Spawn(
        writer,
        {.name = "rcu_scale_wr/%", .index = i, .cpu = writers.cpu(i), .priority = Priority::kFifo});
  }
  writers.Start();
  writers.Join();
  readers.Stop();
  readers.Join();
}

}  // namespace sipi
