// The thread that takes another CPU up or down.
#pragma once

#include "guest/kernel/hotplug/state.h"

namespace sipi {

// Keeps the running thread on one CPU, which is not `target`, for as long as it is control thread:
// step callbacks get that CPU's PerCpu and may sleep. The write lock sees to it that it stays
// online.
class ControlThread {
 public:
  explicit ControlThread(CpuNumber target);
  ~ControlThread();
  ControlThread(const ControlThread&) = delete;
  ControlThread& operator=(const ControlThread&) = delete;

 private:
  uint32_t affinity_;
};

// May an operation end in this state? (Linux: cpuhp_step::cant_stop, and the states in which a CPU
// is on its way with interrupts off.)
bool CanStopAt(abi::CpuhpState state);

// Of a CPU that is not online: gives it up if it was kicked, then PREPARE teardowns down to
// `target`. kInvalid: it comes up on its own, and is online by now; nothing was done. kTimeoutDead:
// it runs, is to die, and has not done so within the bound (CpuHotplug::lost). Control thread.
Error UndoPrepare(Kernel& kernel, CpuNumber cpu, abi::CpuhpState target);

// From the idle loop to `target` in PREPARE: TEARDOWN, then PREPARE teardowns. Control thread.
Error TakeCpuOff(PerCpu& self, CpuNumber cpu, abi::CpuhpState target);

}  // namespace sipi
