// Why a run ends. The first reason counts; whoever sets it goes on, and the main thread takes the
// machine down.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "apic/regs/types.h"
#include "vmm/base/unique_fd.h"

namespace sipi {

enum class EndKind : uint8_t {
  kNone,
  kGuestExit,   // the guest wrote `code` to the exit port
  kFault,       // a vCPU could not go on; `text` says why
  kAllHalted,   // every CPU is blocked for good
  kGuestReset,  // the guest reset the machine through port `code`
  kTimeLimit,
  kSignal,     // `code` is its number
  kHostError,  // `error`: the host could not go on (a vCPU could not be made)
};

struct RunEnd {
  EndKind kind = EndKind::kNone;
  CpuNumber cpu;
  uint32_t code = 0;
  std::string text;
  absl::Status error;
};

class EndLatch {
 public:
  EndLatch();

  // Any thread. True if this is the reason that counts.
  bool Set(RunEnd end);
  bool IsSet() const { return set_.load(std::memory_order_acquire); }
  RunEnd Get() const;

  // Readable once a reason is set.
  int event_fd() const { return event_.get(); }

 private:
  UniqueFd event_;
  std::atomic<bool> set_{false};
  mutable std::mutex mutex_;  // guards end_
  RunEnd end_;
};

}  // namespace sipi
