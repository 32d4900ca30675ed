// The debug-exit port: how a test payload ends its machine with a status.
//
// Source: QEMU, isa-debug-exit: a write of any width ends the process with (value << 1) | 1, of
// which the operating system keeps eight bits. Never 0, so that success is told by convention
// only: kvm-unit-tests take 1 for passed, 3 for failed, 77 for skipped, 127 for aborted.
#pragma once

#include <cstdint>

namespace sipi {

inline constexpr uint16_t kDebugExitPort = 0xf4;

constexpr uint8_t DebugExitStatus(uint32_t value) { return static_cast<uint8_t>(value << 1 | 1); }

static_assert(DebugExitStatus(0) == 1 && DebugExitStatus(1) == 3);
static_assert(DebugExitStatus(77 >> 1) == 77 && DebugExitStatus(127 >> 1) == 127);

}  // namespace sipi
