#include "vmm/cli/process_setup.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace sipi {
namespace {

// A signal handler has no other way to its object.
std::atomic<StopRequest*> stop_of_handler{nullptr};
static_assert(std::atomic<StopRequest*>::is_always_lock_free);

extern "C" void HandleStopSignal(int signal) {
  const int saved_errno = errno;
  if (StopRequest* stop = stop_of_handler.load(std::memory_order_acquire)) stop->Request(signal);
  errno = saved_errno;
}

}  // namespace

SignalsStop::SignalsStop(StopRequest& stop) {
  stop_of_handler.store(&stop, std::memory_order_release);
  struct sigaction action = {};
  action.sa_handler = HandleStopSignal;
  sigemptyset(&action.sa_mask);
  // Each waits for the others, so that Request is not re-entered.
  for (const int signal : kSignals) sigaddset(&action.sa_mask, signal);
  action.sa_flags = SA_RESTART;
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &old_[i]);
    // Under nohup a hang-up is to be ignored.
    if (kSignals[i] == SIGHUP && old_[i].sa_handler == SIG_IGN) continue;
    sigaction(kSignals[i], &action, nullptr);
  }
}

SignalsStop::~SignalsStop() {
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &old_[i], nullptr);
  stop_of_handler.store(nullptr, std::memory_order_release);
}

void IgnoreSigPipe() {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // a file size limit (ulimit -f) is an error of write(2) like others
}

void ReserveStandardStreams() {
  // open takes the lowest free number, so this ends as soon as all three are taken. Read-only: see
  // the header.
  int fd = 0;
  while (fd >= 0 && fd <= STDERR_FILENO) fd = open("/dev/null", O_RDONLY);
  if (fd > STDERR_FILENO) close(fd);
}

}  // namespace sipi
