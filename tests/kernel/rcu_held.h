// Readers and other threads that a test of RCU holds where it wants them.
#pragma once

#include "guest/kernel/alloc.h"
#include "guest/kernel/rcu/read_side.h"
#include "guest/kernel/rcu/state.h"
#include "guest/kernel/sched/time.h"
#include "guest/kernel/sched/wait.h"
#include "tests/kernel/rcu_fixture.h"

namespace sipi {

struct Held {
  Completion in;
  Completion go;
  Completion out;
  platform::Atomic<uint32_t> inside{0};
};

// A reader that sleeps inside, as one that is preempted for long: the leaf's list has it.
inline void HoldingReader(void* argument) {
  auto& held = *static_cast<Held*>(argument);
  Kernel& kernel = *CurrentThread()->kernel;
  rcu::ReadLock();
  held.inside.Store(1, std::memory_order_seq_cst);
  held.in.Complete(kernel);
  held.go.Wait();
  held.inside.Store(0, std::memory_order_seq_cst);
  rcu::ReadUnlock();
  held.out.Complete(kernel);
}

// On return it is inside, asleep, on that CPU's leaf. Thread context.
inline Held& HoldReader(Kernel& kernel, uint32_t cpu) {
  auto& held = *AllocateArray<Held>(kernel, 1);
  SpawnThread(kernel, {.name = "reader", .function = HoldingReader, .argument = &held, .cpu = cpu});
  held.in.Wait();
  SleepJiffies(5);
  return held;
}

inline void WaitNormally(void* argument) {
  Kernel& kernel = *CurrentThread()->kernel;
  rcu::SynchronizeNormal(rcu::StateOf(kernel));
  static_cast<Completion*>(argument)->Complete(kernel);
}
inline void WaitExpedited(void* argument) {
  Kernel& kernel = *CurrentThread()->kernel;
  rcu::SynchronizeExpedited(kernel);
  static_cast<Completion*>(argument)->Complete(kernel);
}

// A thread on CPU 0 that waits for a grace period; on return that has begun, if none runs already.
inline Completion& StartWaiting(Kernel& kernel, void (*wait)(void*)) {
  auto& done = *AllocateArray<Completion>(kernel, 1);
  SpawnThread(kernel, {.name = "waiter", .function = wait, .argument = &done, .cpu = 0});
  SleepJiffies(10);
  return done;
}

// What is waited for has passed, by either kind of cookie. Nobody else has a grace period run.
inline void WaitAndLookAtCookies(Kernel& kernel, void (*wait)(Kernel&)) {
  const rcu::Cookie cookie = rcu::GetState(kernel);
  const rcu::FullCookie full = rcu::GetStateFull(kernel);
  EXPECT_FALSE(rcu::Poll(kernel, cookie) || rcu::PollFull(kernel, full));
  wait(kernel);
  EXPECT_TRUE(rcu::Poll(kernel, cookie));
  EXPECT_TRUE(rcu::PollFull(kernel, full));
}

}  // namespace sipi
