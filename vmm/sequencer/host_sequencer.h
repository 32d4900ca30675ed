// Host-driven bring-up: guest/sequence/driver.h with the VMM in the place of the control CPU. No
// guest code sequences anything; the host works on the handshake words in guest memory and sends
// INIT and SIPI itself.
//
// Protocol with the guest (guest/kernel/smpboot.cc, LetHostBringUp): the boot CPU runs the PREPARE
// steps of all CPUs, rings Doorbell::kReady and halts; the host runs the strategy, stores
// ResultPage::host_sequence_done and wakes the boot CPU. An AP that sleeps in a wait
// (CpuSlot::sleeping) is woken by abi::kWakeVector after each change of a word that it may wait
// for.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "guest/abi/boot_params.h"
#include "guest/abi/handshake.h"
#include "guest/abi/percpu.h"
#include "guest/sequence/driver.h"
#include "vmm/sequencer/startup_sender.h"
#include "vmm/timeline/host_log.h"

namespace sipi {

struct HostSequence {
  sequence::Strategy strategy;
  abi::Knobs knobs;
  std::vector<uint32_t> order;    // CPUs, without the boot CPU
  std::vector<bool> is_primary;   // by CPU number
  std::span<abi::CpuSlot> slots;  // guest memory, one per CPU
  abi::ResultPage* result = nullptr;
};

class HostSequencer {
 public:
  HostSequencer(HostSequence sequence, StartupSender& sender, HostLog& log)
      : sequence_(std::move(sequence)), sender_(sender), log_(log) {}

  // Runs the whole strategy and lets the boot CPU go on. Error: a message could not be sent, or the
  // guest broke the handshake. Once, on one thread, which owns `log` meanwhile.
  absl::Status Run();

  // Makes Run return soon, wherever it waits. Any thread.
  void Stop();

  // --- What sequence::RunStrategy and KickSequence ask for.
  bool InScope(CpuNumber cpu, sequence::Scope scope) const;
  void PrepareKick(CpuNumber cpu);
  void Upcoming(CpuNumber) {}  // the host wakes an AP when its turn comes
  void BringTo(CpuNumber cpu, sequence::Goal goal);
  void KickBroadcast();
  void KickTreeRoots(uint32_t count);
  void WaitAllOnline(sequence::Scope scope);
  void PassBegin(uint32_t index);
  void PassEnd(uint32_t index);

  void SendInit(CpuNumber target);
  void SendInitDeassert(CpuNumber) {}  // no part since the Pentium 4 takes it; no MSI carries it
  void SendStartup(CpuNumber target, uint32_t index);
  struct AllAps {};
  void SendInit(AllAps);
  void SendInitDeassert(AllAps) {}
  void SendStartup(AllAps, uint32_t index);
  void InitDelay(uint32_t us) { DelayUs(us); }
  void DelayUs(uint32_t us);

 private:
  abi::CpuSlot& slot(CpuNumber cpu) { return sequence_.slots[cpu.value]; }
  abi::SyncState StateOf(CpuNumber cpu);
  bool stopped() const { return stop_.load(std::memory_order_acquire) != 0; }
  bool Failed() const { return stopped() || !status_.ok(); }
  void Check(absl::Status status);
  bool Transition(CpuNumber cpu, abi::SyncState from, abi::SyncState to);
  void Notify(CpuNumber cpu);
  void Kick(CpuNumber cpu);
  // Polls until done() or the handshake's bound (false).
  template <class Done>
  bool Poll(Done done);
  bool WaitAliveAndRelease(CpuNumber cpu);
  void WaitOnline(CpuNumber cpu);
  void GiveUp(CpuNumber cpu);
  bool IsOnline(CpuNumber cpu);
  bool IsDown(CpuNumber cpu);
  uint32_t CountOnline();

  HostSequence sequence_;
  StartupSender& sender_;
  HostLog& log_;
  absl::Status status_;
  std::vector<bool> released_;  // by CPU number
  std::atomic<uint32_t> stop_{0};
};

}  // namespace sipi
