#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

#include "vmm/machine/run.h"

namespace sipi {

StopRequest::StopRequest() : event_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

StopRequest::~StopRequest() {
  if (event_fd_ >= 0) close(event_fd_);
}

void StopRequest::Request(int signal) {
  const int saved_errno = errno;
  int none = 0;
  // The first signal names the exit status; those that follow ask for the same.
  signal_.compare_exchange_strong(none, signal, std::memory_order_acq_rel);
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(event_fd_, &one, sizeof one);
  errno = saved_errno;
}

}  // namespace sipi
