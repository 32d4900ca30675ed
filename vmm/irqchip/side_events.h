// A few timeline events about a CPU that other threads write down: messages to it that were lost
// or ignored. Lock-free, since senders write them on the IPI path.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "guest/abi/trace.h"
#include "vmm/timeline/host_log.h"

namespace sipi {

class SideEvents {
 public:
  // Of a CPU that is started once.
  static constexpr size_t kCapacity = 4;

  explicit SideEvents(size_t capacity = kCapacity)
      : capacity_(capacity), entries_(std::make_unique<Entry[]>(capacity)) {}

  // Any thread. What does not fit is counted.
  void Add(uint64_t tsc, abi::TraceEvent event, uint32_t value) {
    const uint32_t index = count_.fetch_add(1, std::memory_order_relaxed);
    if (index >= capacity_) return;
    Entry& entry = entries_[index];
    entry.value.store(value, std::memory_order_relaxed);
    entry.tsc.store(tsc, std::memory_order_relaxed);
    entry.event.store(event, std::memory_order_release);
  }

  bool empty() const { return count_.load(std::memory_order_relaxed) == 0; }
  uint64_t lost() const {
    const uint64_t count = count_.load(std::memory_order_relaxed);
    return count > capacity_ ? count - capacity_ : 0;
  }

  // Copies the events to `log`, oldest first. Precondition: all writers have stopped.
  void CopyTo(HostLog& log) const;

  size_t capacity() const { return capacity_; }

 private:
  struct Entry {
    std::atomic<uint64_t> tsc{0};
    std::atomic<uint32_t> value{0};
    std::atomic<abi::TraceEvent> event{abi::TraceEvent::kNone};
  };
  const size_t capacity_;
  const std::unique_ptr<Entry[]> entries_;
  std::atomic<uint32_t> count_{0};
};

}  // namespace sipi
