// A machine's run: start, wait for the end, take everything down, and what is known afterwards.
#include <poll.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "vmm/base/status_macros.h"
#include "vmm/device/monotonic_clock.h"
#include "vmm/kvm/linux_kvm.h"
#include "vmm/machine/halt_monitor.h"
#include "vmm/machine/machine.h"
#include "vmm/machine/signal_block.h"

namespace sipi {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;
// How long a slow reader of the serial output may take at the end: of a run that ended by itself,
// and of one that somebody wants to be over.
constexpr int64_t kDrainMs = 2'000;
constexpr int64_t kHastyDrainMs = 300;

// What only local APICs of ours can count: KVM's tell nobody what they send, take and deliver.
constexpr const char* kOfOurApics[] = {"inits",
                                       "inits.sent",
                                       "startups.sent",
                                       "startups.ignored",
                                       "ipis",
                                       "ipis.undeliverable",
                                       "interrupts",
                                       "nmis",
                                       "timer.interrupts",
                                       "sleeps",
                                       "wakeups",
                                       "wakeups.futex",
                                       "wakeups.signal"};

// Milliseconds from now to `deadline_ns`, rounded up, for poll(2).
int MsUntil(uint64_t deadline_ns) {
  const uint64_t now = MonotonicNs();
  if (deadline_ns <= now) return 0;
  return static_cast<int>(
      std::min<uint64_t>((deadline_ns - now + kNsPerMs - 1) / kNsPerMs, 1'000'000));
}

}  // namespace

RunEnd Machine::Run(StopRequest& stop, int64_t time_limit_ms) {
  {
    const SignalBlock block;
    const absl::Status status = Launch();
    if (!status.ok()) {
      end_.Set({.kind = EndKind::kHostError, .cpu = {}, .code = 0, .text = {}, .error = status});
    }
  }
  WaitForEnd(stop, time_limit_ms);
  StopEverything();
  log_.Emit(abi::TraceEvent::kRunEnd);
  RunEnd end = end_.Get();
  const bool hasty = end.kind == EndKind::kSignal || end.kind == EndKind::kTimeLimit;
  serial_summary_ = serial_output_->Finish(hasty ? kHastyDrainMs : kDrainMs);
  return end;
}

absl::Status Machine::Launch() {
  if (user_lines_ != nullptr) RETURN_IF_ERROR(user_lines_->Start());
  if (board_ == nullptr || options_.irqchip == IrqchipKind::kUser) {
    // The boot CPU first: it has work to do before it needs an AP, and the factory takes all cores.
    RETURN_IF_ERROR(threads_[0]->Launch());
    return factory_->Start();
  }
  // Other people's guests ring no doorbell before they start their APs: KVM has to know all.
  RETURN_IF_ERROR(factory_->Start());
  return WaitUntilReachable() ? threads_[0]->Launch() : absl::OkStatus();
}

void Machine::WaitForEnd(StopRequest& stop, int64_t time_limit_ms) {
  const uint64_t limit = static_cast<uint64_t>(std::max<int64_t>(time_limit_ms, 0));
  const uint64_t deadline_ns = MonotonicNs() + limit * kNsPerMs;
  const bool monitored = options_.irqchip != IrqchipKind::kUser;
  std::optional<HaltMonitor> monitor;
  pollfd fds[2] = {{.fd = end_.event_fd(), .events = POLLIN, .revents = 0},
                   {.fd = stop.event_fd(), .events = POLLIN, .revents = 0}};
  while (!end_.IsSet()) {
    if (const int signal = stop.signal(); signal != 0) {
      end_.Set({.kind = EndKind::kSignal,
                .cpu = {},
                .code = static_cast<uint32_t>(signal),
                .text = {},
                .error = {}});
      return;
    }
    const int left_ms = MsUntil(deadline_ns);
    if (left_ms == 0) {
      end_.Set({.kind = EndKind::kTimeLimit, .cpu = {}, .code = 0, .text = {}, .error = {}});
      return;
    }
    const int wait_ms = monitored ? std::min(left_ms, HaltMonitor::kIntervalMs) : left_ms;
    if (poll(fds, 2, wait_ms) != 0 || !monitored) continue;
    if (!factory_->done() || sequencer_active_.load(std::memory_order_acquire)) continue;
    if (!monitor) {
      std::vector<KernelVcpu*> vcpus;
      for (const auto& thread : threads_) vcpus.push_back(static_cast<KernelVcpu*>(thread.get()));
      monitor.emplace(std::move(vcpus));
    }
    if (monitor->Tick() && !TimerMayInterrupt()) {
      end_.Set({.kind = EndKind::kAllHalted, .cpu = {}, .code = 0, .text = {}, .error = {}});
    }
  }
}

void Machine::StopEverything() {
  // A thread that is not running yet finds this in its mailbox.
  for (CpuMailbox& mailbox : mailboxes_) mailbox.Post(CpuMailbox::kStop);
  if (factory_ != nullptr) factory_->Stop();
  if (user_lines_ != nullptr) user_lines_->Stop();
  bool join_sequencer = false;
  if (sequencer_ != nullptr) {
    sequencer_->Stop();
    const std::lock_guard lock(sequencer_mutex_);
    stopping_ = true;
    join_sequencer = std::exchange(sequencer_started_, false);
  }
  if (join_sequencer) pthread_join(sequencer_thread_, nullptr);
  for (const auto& thread : threads_) {
    if (thread != nullptr) thread->Join();
  }
}

std::string Machine::Doing(CpuNumber cpu) {
  const auto& thread = threads_[cpu.value];
  return thread == nullptr ? "not created" : thread->Doing();
}

std::map<std::string, uint64_t> Machine::Counters() const {
  VcpuCounters sum;
  for (const auto& thread : threads_) {
    if (thread != nullptr) sum += thread->counters();
  }
  if (chip_ != nullptr) sum.sends += static_cast<const MailboxSender&>(*sender_).counters();
  sum.sends += board_sends_;
  sum.sends += init_line_sends_;
  std::map<std::string, uint64_t> counters;
  sum.AddTo(counters);
  if (options_.irqchip != IrqchipKind::kUser) {
    for (const char* const name : kOfOurApics) counters.erase(name);
  }
  counters["serial.bytes"] = serial_summary_.written_bytes;
  counters["serial.dropped"] = serial_summary_.dropped_bytes;
  return counters;
}

uint64_t Machine::Instructions(CpuNumber cpu) const {
  const auto& thread = threads_[cpu.value];
  if (thread == nullptr || !thread->vcpu().valid()) return 0;
  return thread->vcpu().ReadStat("insn_emulation").value_or(0);
}

std::vector<HostTrack> Machine::Tracks() {
  std::vector<HostTrack> tracks = {{kVmTrack, &log_}};
  if (sequencer_ != nullptr) tracks.push_back({kVmTrack, &sequencer_log_});
  side_logs_.clear();
  for (uint32_t cpu = 0; cpu < cpus(); ++cpu) {
    const auto track = static_cast<int32_t>(cpu);
    if (threads_[cpu] != nullptr) tracks.push_back({track, &threads_[cpu]->log()});
    const SideEvents& side = mailboxes_[cpu].side_events();
    if (side.empty()) continue;
    side_logs_.push_back(std::make_unique<HostLog>(side.capacity()));
    side.CopyTo(*side_logs_.back());
    tracks.push_back({track, side_logs_.back().get()});
  }
  return tracks;
}

uint64_t Machine::lost_side_events() const {
  uint64_t lost = 0;
  for (const CpuMailbox& mailbox : mailboxes_) lost += mailbox.side_events().lost();
  return lost;
}

}  // namespace sipi
