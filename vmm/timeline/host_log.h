// The host's side of the timeline: one preallocated buffer of events per thread of the VMM.
#pragma once

#include <x86intrin.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "guest/abi/trace.h"

namespace sipi {

// Events of one owner: a vCPU's thread, or the VM's main thread. Emit() is one RDTSC and one store
// of 16 bytes: no lock, no allocation, no system call. What does not fit is counted, never
// overwritten.
//
// Threads: one owner thread calls Emit(). Any thread may call the const functions at any time and
// sees a prefix of what was emitted. A log handed from one thread to another (made by the main
// thread, then used by the vCPU's) needs the usual happens-before of thread creation or join in
// between.
class alignas(64) HostLog {
 public:
  // Allocates room for `capacity` records. Pages are not touched before they are needed.
  explicit HostLog(size_t capacity)
      : capacity_(capacity),
        records_(std::make_unique_for_overwrite<abi::TraceRecord[]>(capacity)) {}
  HostLog(const HostLog&) = delete;
  HostLog& operator=(const HostLog&) = delete;

  // Appends an event that happens now. Owner thread only. RDTSC is not serialising, so the time is
  // right to some tens of cycles (SDM vol 2B, RDTSC); that is far below what is measured here.
  void Emit(abi::TraceEvent event, uint16_t target = 0, uint32_t value = 0) {
    EmitAt(__rdtsc(), event, target, value);
  }

  // Appends an event that happened at `tsc` (host TSC ticks). Owner thread only.
  void EmitAt(uint64_t tsc, abi::TraceEvent event, uint16_t target = 0, uint32_t value = 0) {
    const size_t index = count_.load(std::memory_order_relaxed);
    if (index == capacity_) {
      lost_.store(lost_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      return;
    }
    records_[index] = {.tsc = tsc, .event = event, .target = target, .value = value};
    // Releases the record to readers in other threads.
    count_.store(index + 1, std::memory_order_release);
  }

  // What was emitted so far, oldest first; times are host TSC ticks.
  std::span<const abi::TraceRecord> records() const {
    return {records_.get(), count_.load(std::memory_order_acquire)};
  }

  // How many events did not fit.
  uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }

  size_t capacity() const { return capacity_; }

 private:
  const size_t capacity_;
  const std::unique_ptr<abi::TraceRecord[]> records_;
  std::atomic<size_t> count_{0};
  std::atomic<uint64_t> lost_{0};
};

}  // namespace sipi
