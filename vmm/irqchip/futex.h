// futex(2) for the words on which vCPU threads sleep. Private to the process.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

namespace sipi {

// Sleeps while `word` holds `expected`, until a FutexWake, a signal, or `deadline_ns` on
// CLOCK_MONOTONIC. May return early for no reason: look at the word again.
void FutexWait(const std::atomic<uint32_t>& word, uint32_t expected,
               std::optional<uint64_t> deadline_ns = {});

// Wakes up to `count` sleepers.
void FutexWake(const std::atomic<uint32_t>& word, int count = 1);

}  // namespace sipi
