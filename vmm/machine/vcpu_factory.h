// Makes the vCPUs of a machine: a few threads, each taking the next CPU, creating its vCPU, setting
// its CPUID and starting its thread.
//
// KVM_CREATE_VCPU and KVM_SET_CPUID2 are most of a start-up's cost; on several cores they overlap
// with each other and with the boot CPU, which already runs.
#pragma once

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "apic/regs/types.h"

namespace sipi {

class VcpuFactory {
 public:
  // Makes one CPU and starts its thread; called on the factory's threads, for many CPUs at once.
  using MakeFn = std::function<absl::Status(CpuNumber)>;
  // Called once, on one of them, with the first failure. The others stop after what they are at.
  using FailFn = std::function<void(absl::Status)>;

  // For CPUs 1 to cpus - 1.
  VcpuFactory(uint32_t cpus, MakeFn make, FailFn fail)
      : wanted_(cpus - 1), make_(std::move(make)), fail_(std::move(fail)) {}
  ~VcpuFactory();

  // Starts making them. Call with all signals blocked. Error: no thread could be started.
  absl::Status Start();

  // Waits until all are made (true), or the factory was stopped or failed (false). Any thread.
  bool WaitDone();
  bool done() const { return made_.load(std::memory_order_acquire) == wanted_; }

  // Lets the threads end after what they are at, wakes WaitDone, and joins them. Idempotent; one
  // thread.
  void Stop();

 private:
  static void* ThreadMain(void* self);
  void Work();

  const uint32_t wanted_;
  const MakeFn make_;
  const FailFn fail_;
  std::vector<pthread_t> threads_;
  std::atomic<uint32_t> next_{1};
  std::atomic<uint32_t> made_{0};
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;  // held to change what WaitDone waits for
  std::condition_variable changed_;
};

}  // namespace sipi
