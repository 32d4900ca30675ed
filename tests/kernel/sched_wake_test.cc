// Threads, wake-ups and what is built on them: nobody's wake-up is lost, whatever the schedule.
#include "guest/kernel/sched/thread.h"
#include "guest/kernel/sched/wait.h"
#include "tests/kernel/kernel_machine.h"

namespace sipi {
namespace {

struct PingPong {
  Completion ping;
  Completion pong;
  uint32_t rounds = 0;
  uint32_t seen = 0;
};

void Pong(void* argument) {
  auto& state = *static_cast<PingPong*>(argument);
  for (uint32_t i = 0; i < state.rounds; ++i) {
    state.ping.Wait();
    ++state.seen;
    state.pong.Complete(*CurrentThread()->kernel);
  }
}

void Play(Kernel& kernel, uint32_t cpu, uint32_t rounds) {
  auto& state = *AllocateArray<PingPong>(kernel, 1);
  state.rounds = rounds;
  SpawnThread(kernel, {.name = "pong", .function = Pong, .argument = &state, .cpu = cpu});
  for (uint32_t i = 0; i < rounds; ++i) {
    state.ping.Complete(kernel);
    state.pong.Wait();
    EXPECT_EQ(state.seen, i + 1);
  }
}

TEST(SchedWake, PingPongOnOneCpuAndOnTwo) {
  for (const uint32_t cpu : {0u, 1u, Thread::kAnyCpu}) {
    KernelMachine machine({.cpus = 2});
    machine.Run([cpu](Kernel& kernel) { Play(kernel, cpu, 100); });
  }
}

TEST(SchedWake, NoWakeUpIsLostUnderAnySchedule) {
  ForSeeds(100, {.cpus = 3}, [](Kernel& kernel) {
    Play(kernel, 1, 10);
    Play(kernel, Thread::kAnyCpu, 10);
    Play(kernel, 0, 10);
  });
}

}  // namespace
}  // namespace sipi
