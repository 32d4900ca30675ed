// What the process does about signals and its standard streams.
#pragma once

#include <signal.h>

#include "vmm/machine/run.h"

namespace sipi {

// While it lives, SIGINT and SIGTERM call stop.Request(signal), however often they come; before and
// after, they do what they did. One at a time per process. `stop` must outlive it.
class SignalsStop {
 public:
  explicit SignalsStop(StopRequest& stop);
  ~SignalsStop();
  SignalsStop(const SignalsStop&) = delete;
  SignalsStop& operator=(const SignalsStop&) = delete;

 private:
  struct sigaction old_int_ = {};
  struct sigaction old_term_ = {};
};

// A write to a closed pipe returns EPIPE from now on instead of killing the process.
void IgnoreSigPipe();

// Occupies those of descriptors 0 to 2 that are closed, so that no file or device of ours gets such
// a number and receives what is meant for standard output. Writing to one that was closed fails
// with EBADF.
void ReserveStandardStreams();

}  // namespace sipi
