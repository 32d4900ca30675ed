// One vCPU and its thread: the loop around KVM_RUN. What differs between the irqchips is in the
// derived classes.
//
// States of the thread:
//
//   Launch -> [prepare -> enter -> KVM_RUN -> handle exit] ... -> left
//
// `prepare` does all that was posted to the mailbox, and sleeps where the CPU has nothing to do.
// The thread leaves when it is told to stop, when the guest ends the machine, or at a fault.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "vmm/irqchip/cpu_mailbox.h"
#include "vmm/kvm/vcpu.h"
#include "vmm/timeline/host_log.h"
#include "vmm/vcpu/latency_dice.h"
#include "vmm/vcpu/vcpu_counters.h"
#include "vmm/vcpu/vcpu_world.h"

namespace sipi {

class VcpuThread {
 public:
  VcpuThread(const VcpuWorld& world, CpuNumber cpu, CpuMailbox& mailbox, size_t log_records);
  virtual ~VcpuThread();
  VcpuThread(const VcpuThread&) = delete;
  VcpuThread& operator=(const VcpuThread&) = delete;

  // Takes over a new vCPU, with its CPUID set. Before Launch.
  void Adopt(Vcpu vcpu);

  // The state in which the first KVM_RUN starts: the boot CPU's, by the loader. Before Launch.
  absl::Status SetState(const kvm_regs& regs, const kvm_sregs& sregs);

  // This CPU, the boot CPU, is about to enter a payload: leaves its APIC as firmware would. Before
  // Launch, or on the thread.
  virtual void HandOver() {}

  // Starts the thread. Call with all signals blocked, the thread inherits that. Error:
  // ResourceExhausted with CPU and remedy.
  absl::Status Launch();
  bool launched() const { return launched_; }
  void Join();  // does nothing if it was not launched

  CpuNumber cpu() const { return cpu_; }
  Vcpu& vcpu() { return vcpu_; }
  HostLog& log() { return log_; }
  CpuMailbox& mailbox() { return mailbox_; }

  // After Join:
  const VcpuCounters& counters() const { return counters_; }
  // "waiting for SIPI", "halted, IF=0, RIP 0x...", "running, RIP 0x...", "not created".
  std::string Doing();
  bool faulted() const { return faulted_; }

 protected:
  enum class Next : uint8_t {
    kEnter,  // go into the guest
    kAgain,  // prepare once more
    kLeave,  // end the thread
  };
  // Called before each entry.
  virtual Next Prepare() = 0;
  // An exit that VcpuThread does not know; false: unknown here too. The thread goes on.
  virtual bool HandleChipExit() = 0;
  // KVM_RUN returned: what must be taken over from kvm_run before anything else.
  virtual void AfterRun() {}
  // KVM_RUN returned EAGAIN.
  virtual void OnAgain() {}
  virtual std::string DoingNow() = 0;

  const VcpuWorld& world() const { return world_; }
  kvm_run& run() { return vcpu_.run(); }
  VcpuCounters& tally() { return counters_; }
  bool is_boot_cpu() const { return cpu_.value == 0; }

  // Sleeps for what the profile imposes, and logs it. Ends early only if the thread is to stop.
  void Impose(abi::Charge kind, const Latency& latency);
  // Sleeps; ends early only if the thread is to stop. Burns nothing.
  void HoldFor(uint64_t ns);
  // Makes the thread's timed sleeps precise (prctl PR_SET_TIMERSLACK), once.
  void SleepPrecisely();
  uint64_t DrawLatency(const Latency& latency) { return dice_.Draw(latency); }
  // Reports and marks the CPU as faulted.
  void Fault(std::string diagnosis);
  // An MMIO access that is not the local APIC's: the board's, or nobody's.
  void BoardMmio();

  // Lets KVM finish the I/O of the last exit, so that registers may be read and replaced (KVM API,
  // section 5: after KVM_EXIT_IO, MMIO and MSR exits KVM_RUN must be entered once more).
  void CompletePendingExit();

 private:
  static void* ThreadMain(void* self);
  void Loop();
  // One KVM_RUN and what follows it; false: leave.
  bool RunOnce();
  bool HandleExit();
  bool HandleIo();
  bool HandlePortAction(const PortAction& action);
  void Charge(abi::Charge kind);
  void Yield();
  bool InFirmware();
  bool EnterPayload();

  const VcpuWorld& world_;
  const CpuNumber cpu_;
  CpuMailbox& mailbox_;
  Vcpu vcpu_;
  HostLog log_;
  VcpuCounters counters_;
  LatencyDice dice_;
  pthread_t thread_ = {};
  bool launched_ = false;
  bool precise_ = false;
  bool faulted_ = false;
  bool exit_pending_ = false;  // the last exit wants CompletePendingExit
};

}  // namespace sipi
