// The signal that takes a vCPU's thread out of KVM_RUN.
//
// Source: Linux Documentation/virt/kvm/api.rst, section 5, kvm_run.immediate_exit. The handler sets
// immediate_exit of the vCPU whose thread it runs on. So a signal that arrives at any moment
// counts: inside KVM_RUN it ends it; before, between the last look at the mailbox and KVM_RUN, it
// makes that KVM_RUN return at once.
#pragma once

#include <sys/types.h>

#include "vmm/kvm/vcpu.h"

namespace sipi {

// The signal's number (SIGUSR1).
int KickSignal();

// Installs the handler; once per process, later calls do nothing. It stays: a late signal must not
// end the process.
void InstallKickSignal();

// Sends the signal to a thread of this process. A thread that is gone is no error. Any thread.
void SendKick(pid_t tid);

// While it lives, the calling thread is the vCPU's: it takes the kick signal and no other (a
// blocked signal of the process then goes to the main thread), and the handler acts on `vcpu`.
class KickScope {
 public:
  explicit KickScope(Vcpu& vcpu);
  ~KickScope();
  KickScope(const KickScope&) = delete;
  KickScope& operator=(const KickScope&) = delete;
};

}  // namespace sipi
