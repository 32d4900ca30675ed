#include "vmm/machine/end_latch.h"

#include <sys/eventfd.h>

#include <utility>

namespace sipi {

EndLatch::EndLatch() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

bool EndLatch::Set(RunEnd end) {
  {
    const std::lock_guard lock(mutex_);
    if (end_.kind != EndKind::kNone) return false;
    end_ = std::move(end);
  }
  set_.store(true, std::memory_order_release);
  eventfd_write(event_.get(), 1);
  return true;
}

RunEnd EndLatch::Get() const {
  const std::lock_guard lock(mutex_);
  return end_;
}

}  // namespace sipi
