#include "vmm/irqchip/kick_signal.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <mutex>

namespace sipi {
namespace {

// Read by the handler on the same thread, so it needs no more than to be lock-free.
thread_local std::atomic<Vcpu*> kicked_vcpu{nullptr};

void OnKick(int /*signal*/) {
  Vcpu* vcpu = kicked_vcpu.load(std::memory_order_relaxed);
  if (vcpu != nullptr) vcpu->RequestImmediateExit();
}

}  // namespace

int KickSignal() { return SIGUSR1; }

void InstallKickSignal() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action = {};
    action.sa_handler = &OnKick;
    sigemptyset(&action.sa_mask);
    sigaction(KickSignal(), &action, nullptr);
  });
}

void SendKick(pid_t tid) {
  const int saved_errno = errno;
  syscall(SYS_tgkill, getpid(), tid, KickSignal());
  errno = saved_errno;
}

KickScope::KickScope(Vcpu& vcpu) {
  kicked_vcpu.store(&vcpu, std::memory_order_relaxed);
  sigset_t others;
  sigfillset(&others);
  sigdelset(&others, KickSignal());
  pthread_sigmask(SIG_SETMASK, &others, nullptr);
}

KickScope::~KickScope() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  kicked_vcpu.store(nullptr, std::memory_order_relaxed);
}

}  // namespace sipi
