// Threads that share one piece of work, on a host that may have no room for them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "absl/status/status.h"

namespace sipi {

// Runs `work` on `count` threads of its own until each has returned, and `tick`, if not null, about
// every second on the calling one. When a thread cannot be made, or `work` returns an error or runs
// out of memory, `give_up` is set, upon which the others have to return soon. Errors: the first of
// those; for the host's limits ResourceExhausted, naming --jobs and what limits it.
absl::Status RunWorkers(uint32_t count, const std::function<absl::Status()>& work,
                        const std::function<void()>& tick, std::atomic<bool>& give_up);

}  // namespace sipi
