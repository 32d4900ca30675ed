// What the process does about signals and its standard streams.
#pragma once

#include <signal.h>

#include <array>

#include "vmm/machine/run.h"

namespace sipi {

// While it lives, SIGHUP, SIGINT and SIGTERM call stop.Request(signal), however often they come;
// before and after, they do what they did. A SIGHUP that was ignored stays so (nohup). One at a
// time per process. `stop` must outlive it.
class SignalsStop {
 public:
  explicit SignalsStop(StopRequest& stop);
  ~SignalsStop();
  SignalsStop(const SignalsStop&) = delete;
  SignalsStop& operator=(const SignalsStop&) = delete;

 private:
  static constexpr std::array<int, 3> kSignals = {SIGHUP, SIGINT, SIGTERM};
  std::array<struct sigaction, kSignals.size()> old_ = {};
};

// A write to a closed pipe returns EPIPE from now on instead of killing the process.
void IgnoreSigPipe();

// Occupies those of descriptors 0 to 2 that are closed, so that no file or device of ours gets such
// a number and receives what is meant for standard output. Writing to one that was closed fails
// with EBADF.
void ReserveStandardStreams();

}  // namespace sipi
