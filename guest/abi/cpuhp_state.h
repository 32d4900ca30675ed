// The numbers and names of the cpuhp states that the guest has. Where Linux 7.3 has the state,
// its number (include/linux/cpuhotplug.h) and name (sysfs) are Linux's, but for one: the
// parallel series' x86/cpu:wait-init stands between cpu:kick_ap (82) and cpu:bringup, which
// Linux numbers 83, so it takes 83 here and cpu:bringup 84 (Linux's idle:dead, a state on the
// way down). The x86/... STARTING states take numbers that Linux leaves to other architectures.
// Freestanding.
#pragma once

#include <cstdint>

namespace sipi::abi {

enum class CpuhpState : uint32_t {
  kOffline = 0,
  kCreateThreads = 1,         // PREPARE: idle stack, per-CPU area
  kTimersPrepare = 58,        // PREPARE: timer state
  kKickAp = 82,               // PREPARE: INIT, SIPI, SIPI
  kWaitInit = 83,             // PREPARE: alive seen (the series' x86/cpu:wait-init)
  kBringupCpu = 84,           // PREPARE: wait until the AP has done its STARTING section
  kApOffline = 85,            // STARTING, on the AP, interrupts off; local APIC on
  kApCachectrlStarting = 86,  // cache/MTRR/PAT set-up
  kApTopologyStarting = 87,   // sibling and package masks
  kApTscSyncStarting = 88,    // TSC check against the control CPU
  kApTimersStarting = 89,     // timer and delay calibration, or its reuse
  kApOnline = 141,            // STARTING done, CPU in the online mask
  kApOnlineIdle = 143,        // interrupts on, in the idle loop
  kApSmpbootThreads = 147,    // ONLINE section
  kApActive = 234,            // ONLINE: takes work
  kOnline = 235,
};

constexpr const char* Name(CpuhpState state) {
  switch (state) {
    case CpuhpState::kOffline:
      return "offline";
    case CpuhpState::kCreateThreads:
      return "threads:prepare";
    case CpuhpState::kTimersPrepare:
      return "timers:prepare";
    case CpuhpState::kKickAp:
      return "cpu:kick_ap";
    case CpuhpState::kWaitInit:
      return "x86/cpu:wait-init";
    case CpuhpState::kBringupCpu:
      return "cpu:bringup";
    case CpuhpState::kApOffline:
      return "ap:offline";
    case CpuhpState::kApCachectrlStarting:
      return "x86/cachectrl:starting";
    case CpuhpState::kApTopologyStarting:
      return "x86/topology:starting";
    case CpuhpState::kApTscSyncStarting:
      return "x86/tsc-sync:starting";
    case CpuhpState::kApTimersStarting:
      return "timers:starting";
    case CpuhpState::kApOnline:
      return "ap:online";
    case CpuhpState::kApOnlineIdle:
      return "ap:online-idle";
    case CpuhpState::kApSmpbootThreads:
      return "smpboot/threads:online";
    case CpuhpState::kApActive:
      return "sched:active";
    case CpuhpState::kOnline:
      return "online";
  }
  return "?";
}

}  // namespace sipi::abi
