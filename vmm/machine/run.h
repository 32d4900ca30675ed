// Runs one virtual machine from creation to end.
#pragma once

#include <atomic>
#include <functional>

#include "absl/status/statusor.h"
#include "vmm/machine/run_config.h"
#include "vmm/timeline/run_record.h"

namespace sipi {

// Asks a run to stop. May be set from any thread, and from a signal handler.
class StopRequest {
 public:
  void Request(int signal);  // async-signal-safe; wakes the run
  int signal() const { return signal_.load(std::memory_order_acquire); }
  int event_fd() const { return event_fd_; }
  StopRequest();
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

 private:
  std::atomic<int> signal_{0};
  int event_fd_ = -1;
};

// Creates the VM, boots the guest, brings its CPUs up, and takes everything down again: when it
// returns, no thread and no file descriptor of the run is left, whatever happened. Called on any
// thread, one run at a time per StopRequest.
//
// Errors are those that let no guest run (KVM missing, limits, memory, the k-th vCPU); they name
// the ioctl, file or limit, and the remedy. Everything that happens once the guest runs is in the
// record.
absl::StatusOr<RunRecord> RunMachine(const RunConfig& config, StopRequest& stop);

}  // namespace sipi
