// The numbers and names of the cpuhp states that the guest has. Where Linux 7.3 has the state,
// its number (include/linux/cpuhotplug.h) and name (sysfs) are Linux's, but for one: the
// parallel series' x86/cpu:wait-init stands between cpu:kick_ap (82) and cpu:bringup, which
// Linux numbers 83, so it takes 83 here and cpu:bringup 84 (Linux's idle:dead, a state on the
// way down). The x86/... STARTING states take numbers that Linux leaves to other architectures;
// cpuidle's DEAD state has 6.12's number. Freestanding.
#pragma once

#include <cstdint>

namespace sipi::abi {

enum class CpuhpState : uint32_t {
  kOffline = 0,
  kCreateThreads = 1,         // PREPARE: idle stack, per-CPU area, threads
  kCpuidleDead = 17,          // PREPARE: way down only; a driver that lets go of a dead CPU
  kRcutreePrep = 43,          // PREPARE: RCU's per-CPU data
  kTimersPrepare = 58,        // PREPARE: timer state; way down: its timers move to the control CPU
  kKickAp = 82,               // PREPARE: INIT, SIPI, SIPI
  kWaitInit = 83,             // PREPARE: alive seen (the series' x86/cpu:wait-init)
  kBringupCpu = 84,           // PREPARE: wait until the AP has done its STARTING section
  kApOffline = 85,            // STARTING, on the AP, interrupts off; local APIC on
  kApCachectrlStarting = 86,  // cache/MTRR/PAT set-up
  kApSchedStarting = 87,      // its context becomes its idle thread
  kApRcutreeDying = 88,       // way down only
  kApTopologyStarting = 90,   // sibling and package masks
  kApTscSyncStarting = 91,    // TSC check against the control CPU
  kApTimersStarting = 92,     // timer and delay calibration, or its reuse
  kApSmpcfdDying = 136,       // way down only: function calls that wait here run
  kApOnline = 141,            // STARTING done, CPU in the online mask
  kTeardownCpu = 142,         // control CPU, way down only: stops the CPU, has it die
  kApOnlineIdle = 143,        // interrupts on, in the idle loop
  kApSmpbootThreads = 147,    // ONLINE section
  kApRcutreeOnline = 188,     // ONLINE
  kApOnlineDyn = 191,         // ONLINE: the first of those that drivers plug in
  kApActive = 234,            // ONLINE: takes work
  kOnline = 235,
};

constexpr const char* Name(CpuhpState state) {
  switch (state) {
    case CpuhpState::kOffline:
      return "offline";
    case CpuhpState::kCreateThreads:
      return "threads:prepare";
    case CpuhpState::kCpuidleDead:
      return "cpuidle/pseries:DEAD";
    case CpuhpState::kRcutreePrep:
      return "RCU/tree:prepare";
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
    case CpuhpState::kApSchedStarting:
      return "sched:starting";
    case CpuhpState::kApRcutreeDying:
      return "RCU/tree:dying";
    case CpuhpState::kApTopologyStarting:
      return "x86/topology:starting";
    case CpuhpState::kApTscSyncStarting:
      return "x86/tsc-sync:starting";
    case CpuhpState::kApTimersStarting:
      return "timers:starting";
    case CpuhpState::kApSmpcfdDying:
      return "smpcfd:dying";
    case CpuhpState::kApOnline:
      return "ap:online";
    case CpuhpState::kTeardownCpu:
      return "cpu:teardown";
    case CpuhpState::kApOnlineIdle:
      return "ap:online-idle";
    case CpuhpState::kApSmpbootThreads:
      return "smpboot/threads:online";
    case CpuhpState::kApRcutreeOnline:
      return "RCU/tree:online";
    case CpuhpState::kApOnlineDyn:
      return "cpuidle/pseries:online";
    case CpuhpState::kApActive:
      return "sched:active";
    case CpuhpState::kOnline:
      return "online";
  }
  return "?";
}

}  // namespace sipi::abi
