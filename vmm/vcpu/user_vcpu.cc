#include "vmm/vcpu/user_vcpu.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "vmm/base/tsc.h"
#include "vmm/device/monotonic_clock.h"
#include "vmm/vcpu/fault_report.h"
#include "vmm/vcpu/reset_state.h"

namespace sipi {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;

apic::ApicConfig ConfigOf(const VcpuWorld& world) {
  apic::ApicConfig config;
  config.tsc_hz = uint64_t{world.tsc_khz} * 1000;
  config.has_x2apic = world.has_x2apic;
  // As in KVM's APIC, on which payloads rely; sipi's own guest has no use for it.
  config.has_writable_xapic_id = world.board != nullptr;
  config.has_directed_eoi = world.board != nullptr;  // its I/O APIC has an EOI register
  config.has_tsc_deadline = world.has_tsc_deadline;
  config.phys_addr_bits = world.phys_addr_bits;
  // IA32_MCG_CAP is KVM's, and has bit 10 only after KVM_X86_SETUP_MCE.
  config.has_cmci = false;
  return config;
}

}  // namespace

UserVcpu::UserVcpu(const VcpuWorld& world, CpuNumber cpu, ApicId apic_id, CpuMailbox& mailbox,
                   size_t log_records)
    : VcpuThread(world, cpu, mailbox, log_records),
      apic_(apic_id, cpu.value == 0, ConfigOf(world)),
      waiting_(cpu.value != 0),
      tsc_offset_(world.tsc_offset) {
  // Firmware hands all CPUs over in one mode; in x2APIC mode where IDs need more than 8 bits.
  apic_.Reset(cpu.value == 0, world.apic_mode == abi::ApicMode::kX2Apic ? apic::ApicMode::kX2Apic
                                                                        : apic::ApicMode::kXApic);
}

VcpuThread::Next UserVcpu::Prepare() {
  const uint32_t work = mailbox().TakeWork();
  if (work != 0 && !TakeWork(work)) return Next::kLeave;
  if (waiting_) {
    Block({});
    return Next::kAgain;
  }
  SampleLint0();
  AcceptDue();
  if (halted_) {
    if (!WakesFromHalt()) {
      // With interrupts off no timer can wake it, only an NMI or INIT.
      Block(run().if_flag != 0 ? NextDeadlineNs() : std::nullopt);
      return Next::kAgain;
    }
    halted_ = false;
  }
  if (!Inject()) return Next::kLeave;
  if (!ArmKick()) return Next::kLeave;
  if (first_run_) log().Emit(abi::TraceEvent::kFirstRun);
  first_run_ = false;
  has_run_ = true;
  return Next::kEnter;
}

bool UserVcpu::TakeWork(uint32_t work) {
  if ((work & CpuMailbox::kStop) != 0) return false;
  // INIT before interrupts: those that were posted behind it find the APIC reset, and disabled.
  if ((work & CpuMailbox::kStartup) != 0) TakeStartup();
  if ((work & CpuMailbox::kVectors) != 0) TakeVectors();
  if ((work & CpuMailbox::kNmi) != 0) {
    // Held while the CPU waits for a SIPI, see the head of user_vcpu.h.
    nmis_pending_ = std::min(nmis_pending_ + mailbox().TakeNmis(), CpuMailbox::kMostNmis);
  }
  if ((work & CpuMailbox::kExtInt) != 0 && !waiting_) ext_int_pending_ = true;
  if ((work & CpuMailbox::kIntPin) != 0) RaiseLint0();
  return !faulted();
}

void UserVcpu::TakeStartup() {
  using Kind = apic::StartupAction::Kind;
  const apic::StartupAction action = mailbox().startup().Take();
  if (action.kind == Kind::kInit || action.kind == Kind::kInitThenStart) TakeInit();
  if (action.kind == Kind::kStart || action.kind == Kind::kInitThenStart) Start(action.vector);
}

void UserVcpu::TakeInit() {
  log().Emit(abi::TraceEvent::kInitDelivered);
  ++tally().inits_taken;
  apic_.Init();
  Publish();
  RefreshTimer();
  in_flight_.clear();
  halted_ = false;
  nmis_pending_ = 0;
  nmis_in_kvm_ = nmi_held_in_kvm_ = false;
  ext_int_pending_ = false;
  waiting_ = !apic_.bsp();
  if (has_run_) {
    CompletePendingExit();
    if (const absl::StatusOr<kvm_sregs> sregs = vcpu().GetSregs(); sregs.ok()) {
      cr0_at_init_ = sregs->cr0;
    }
  }
  Impose(abi::Charge::kInit, world().profile.init);
  if (waiting_) return;
  if (!world().firmware_present) {
    Fault(absl::StrCat("INIT reached CPU ", cpu().value,
                       ", the boot CPU: it restarts at F000:FFF0, and this machine has no firmware "
                       "there"));
    return;
  }
  Restart(apic::StateAfterInit(world().cpuid_signature, cr0_at_init_));
}

void UserVcpu::Start(Vector vector) {
  log().Emit(abi::TraceEvent::kSipiDelivered, 0, vector.value);
  ++tally().startups_taken;
  if (world().fault.kind == abi::Fault::kLate && world().fault.cpu == cpu().value && !was_late_) {
    was_late_ = true;
    HoldFor(world().fault.value * kNsPerMs);
  }
  Impose(abi::Charge::kStartup, world().profile.startup);
  apic::CpuResetState state = apic::StateAfterInit(world().cpuid_signature, cr0_at_init_);
  const apic::StartupEntry entry = apic::EntryAfterSipi(vector);
  state.cs = entry.cs;
  state.rip = entry.rip;
  if (Restart(state)) waiting_ = false;
}

bool UserVcpu::Restart(const apic::CpuResetState& state) {
  const kvm_regs regs = RegsOf(state);
  kvm_sregs sregs = SregsOf(state, world().reset_sregs);
  sregs.apic_base = apic_.ReadApicBase();
  const absl::Status status =
      ImposeState(vcpu(), regs, sregs, world().sync_regs, /*events_and_debug=*/has_run_);
  if (!status.ok()) {
    Fault(absl::StrCat("CPU ", cpu().value, " cannot be reset: ", status.message()));
    return false;
  }
  run().ready_for_interrupt_injection = 0;  // what the last exit said is void
  run().if_flag = 0;
  run().cr8 = 0;
  first_run_ = true;
  return true;
}

void UserVcpu::TakeVectors() {
  const CpuMailbox::VectorWords vectors = mailbox().TakeVectors();
  const CpuMailbox::VectorWords levels = mailbox().TakeLevels();
  const Latency& latency = world().profile.ipi;
  if (latency.ns == 0 && latency.jitter_ns == 0) return AcceptVectors(vectors, levels);
  SleepPrecisely();
  in_flight_.push_back({MonotonicNs() + DrawLatency(latency), vectors, levels});
}

void UserVcpu::AcceptVectors(const CpuMailbox::VectorWords& vectors,
                             const CpuMailbox::VectorWords& levels) {
  for (const bool level : {false, true}) {
    const CpuMailbox::VectorWords& words = level ? levels : vectors;
    for (size_t word = 0; word < words.size(); ++word) {
      for (uint64_t bits = words[word]; bits != 0; bits &= bits - 1) {
        const size_t vector = word * 64 + static_cast<size_t>(std::countr_zero(bits));
        apic_.Accept(Vector(static_cast<uint8_t>(vector)), level);
      }
    }
  }
}

// As ExtINT the pin is not an event: it is looked at when the CPU can take the interrupt
// (ExtIntDue), and so it is where the APIC is disabled.
void UserVcpu::RaiseLint0() {
  switch (apic_.RaiseLocal(apic::LvtEntry::kLint0)) {
    case apic::LocalDelivery::kNmi:
      nmis_pending_ = std::min(nmis_pending_ + 1, CpuMailbox::kMostNmis);
      return;
    case apic::LocalDelivery::kInit:
      return world().chip->SendInit(cpu(), tally().sends);
    case apic::LocalDelivery::kSmi:
      ++tally().sends.undeliverable;
      return;
    case apic::LocalDelivery::kNone:
    case apic::LocalDelivery::kFixed:
    case apic::LocalDelivery::kExtInt:
      return;
  }
}

// A level-triggered LINT0 asks again after the EOI, for as long as the pin is high.
void UserVcpu::SampleLint0() {
  if (world().board == nullptr || !is_boot_cpu() || !world().board->lines().IntPin()) return;
  const uint32_t lint0 = apic_.lvt(apic::LvtEntry::kLint0);
  const bool fixed = apic::LvtDeliveryMode(lint0) == apic::DeliveryMode::kFixed;
  if (fixed && (lint0 & apic::kLvtLevelTriggered) != 0) RaiseLint0();
}

apic::Time UserVcpu::Now() const {
  return {.ns = MonotonicNs(), .tsc = ReadTsc() + static_cast<uint64_t>(tsc_offset_)};
}

// KVM changes it when the guest writes IA32_TSC or IA32_TSC_ADJUST, without an exit. Our own guest
// writes neither.
void UserVcpu::RefreshTscOffset() {
  const uint32_t timer = apic_.lvt(apic::LvtEntry::kTimer);
  if (world().board == nullptr || apic::LvtTimerMode(timer) != apic::TimerMode::kTscDeadline)
    return;
  tsc_offset_ = vcpu().TscOffset().value_or(tsc_offset_);
}

void UserVcpu::AcceptDue() {
  if (!timer_deadline_ns_ && in_flight_.empty()) return;
  const apic::Time now = Now();
  while (!in_flight_.empty() && in_flight_.front().due_ns <= now.ns) {
    AcceptVectors(in_flight_.front().vectors, in_flight_.front().levels);
    in_flight_.pop_front();
  }
  if (timer_deadline_ns_ && *timer_deadline_ns_ <= now.ns) {
    RefreshTscOffset();
    if (apic_.Advance(Now())) ++tally().timer_interrupts;
    RefreshTimer();
  }
}

// An expiry that finds the last one's interrupt still in IRR changes nothing (SDM vol 3A, 11.8.4):
// nobody is kicked or woken for it. Else a timer of a period shorter than the way into the guest
// would keep the guest from its next instruction for ever.
std::optional<uint64_t> UserVcpu::NextDeadlineNs() const {
  const Vector vector(static_cast<uint8_t>(apic_.lvt(apic::LvtEntry::kTimer)));
  std::optional<uint64_t> deadline = timer_deadline_ns_;
  if (apic_.Pending(vector)) deadline.reset();
  if (!in_flight_.empty()) {
    deadline = std::min(deadline.value_or(UINT64_MAX), in_flight_.front().due_ns);
  }
  return deadline;
}

bool UserVcpu::ArmKick() {
  const std::optional<uint64_t> deadline = NextDeadlineNs();
  const int error = deadline ? kick_timer_.ArmAt(*deadline) : 0;
  if (error == 0) return true;
  Fault(absl::StrCat("timer_create for CPU ", cpu().value, ": ", std::strerror(error),
                     "; raise the limit of pending signals and timers (ulimit -i)"));
  return false;
}

void UserVcpu::Block(std::optional<uint64_t> deadline_ns) {
  ++tally().blocked_sleeps;
  if (deadline_ns) {
    SleepPrecisely();
    mailbox().Sleep(~0u, deadline_ns);
    return;
  }
  bool entered = false;
  mailbox().Sleep(~0u, {}, [&] {
    entered = true;
    if (world().ledger->Enter()) world().events->OnAllIdle();
  });
  if (entered) world().ledger->Leave();
}

// KVM may hold an NMI that could not be taken before the HLT, and gives the exit all the same: in
// the shadow of STI or MOV SS, or where the IRET that ended the last NMI's handler was just before.
absl::StatusOr<bool> UserVcpu::HltEndsAtOnce() {
  if (!nmi_held_in_kvm_) return false;
  const absl::StatusOr<kvm_vcpu_events> events = vcpu().GetEvents();
  if (!events.ok()) return events.status();
  const auto& nmi = events->nmi;
  nmi_held_in_kvm_ = nmi.injected != 0 || nmi.pending != 0;
  return nmi.injected != 0 || (nmi.pending != 0 && nmi.masked == 0);
}

// By the handler of one (SDM vol 3A, 6.7.1): then they wake nobody either.
bool UserVcpu::NmisAreBlocked() {
  const absl::StatusOr<kvm_vcpu_events> events = vcpu().GetEvents();
  return events.ok() && events->nmi.masked != 0;
}

bool UserVcpu::WakesFromHalt() {
  if (nmis_pending_ != 0 && !NmisAreBlocked()) return true;
  return run().if_flag != 0 && InterruptDue();
}

// SDM vol 3A, 11.5.1: LINT0 in delivery mode ExtINT; 11.4.3: with the APIC disabled by hardware the
// pin is INTR. The 8259 is wired to the boot CPU's.
bool UserVcpu::ExtIntDue() const {
  if (ext_int_pending_) return true;
  if (world().board == nullptr || !is_boot_cpu() || !world().board->lines().IntPin()) return false;
  if (apic_.mode() == apic::ApicMode::kDisabled) return true;
  const uint32_t lint0 = apic_.lvt(apic::LvtEntry::kLint0);
  return (lint0 & apic::kLvtMasked) == 0 &&
         apic::LvtDeliveryMode(lint0) == apic::DeliveryMode::kExtInt;
}

// What firmware leaves behind, as far as payloads rely on it: the APIC enabled, the 8259 through
// LINT0, NMIs through LINT1 (MultiProcessor Specification 1.4, 3.6.2.2 "Virtual Wire Mode").
void UserVcpu::HandOver() {
  constexpr uint32_t kSvr = apic::kSvrEnable | 0xff;
  const uint32_t ext_int = static_cast<uint32_t>(apic::DeliveryMode::kExtInt) << 8;
  const uint32_t nmi = static_cast<uint32_t>(apic::DeliveryMode::kNmi) << 8;
  for (const auto& [reg, value] :
       {std::pair(apic::Reg::kSvr, kSvr), std::pair(apic::Reg::kLvtLint0, ext_int),
        std::pair(apic::Reg::kLvtLint1, nmi)}) {
    const uint32_t offset = static_cast<uint32_t>(reg);
    Apply(apic_.mode() == apic::ApicMode::kX2Apic
              ? apic_.WriteMsr(apic::kX2ApicMsrFirst + offset / 16, value, Now())
              : apic_.WriteMmio(offset, value, Now()));
  }
}

bool UserVcpu::Inject() {
  absl::Status status = InjectNmis();
  const bool due = InterruptDue();
  const bool ready = run().ready_for_interrupt_injection != 0 && run().if_flag != 0;
  if (due && ready && !nmis_in_kvm_ && status.ok()) status = InjectInterrupt();
  run().request_interrupt_window = InterruptDue() ? 1 : 0;
  run().cr8 = apic_.Cr8();
  if (!status.ok()) Fault(absl::StrCat("CPU ", cpu().value, ": ", status.message()));
  return status.ok();
}

bool UserVcpu::InterruptDue() const {
  return ExtIntDue() || apic_.HighestDeliverable().has_value();
}

// An NMI goes before any interrupt (SDM vol 3A, 6.9), but KVM delivers an interrupt that it was
// given before an NMI that still waits in it. So while one does, it gets no interrupt; unless the
// NMI waits for an NMI's handler to end (6.7.1), which holds back no interrupt.
absl::Status UserVcpu::InjectNmis() {
  absl::Status status;
  for (; nmis_pending_ != 0 && status.ok(); --nmis_pending_) {
    ++tally().nmis_injected;
    nmis_in_kvm_ = nmi_held_in_kvm_ = true;
    status = vcpu().Nmi();
  }
  if (!nmis_in_kvm_ || !status.ok()) return status;
  const absl::StatusOr<kvm_vcpu_events> events = vcpu().GetEvents();
  if (!events.ok()) return events.status();
  const auto& nmi = events->nmi;
  nmis_in_kvm_ = nmi.injected != 0 || (nmi.pending != 0 && nmi.masked == 0);
  nmi_held_in_kvm_ = nmi.injected != 0 || nmi.pending != 0;
  return absl::OkStatus();
}

// One interrupt: the 8259's goes past the APIC and its priorities, and so comes first.
absl::Status UserVcpu::InjectInterrupt() {
  Vector vector(0);
  if (ExtIntDue()) {
    ext_int_pending_ = false;
    vector = world().board->lines().Acknowledge();
  } else {
    vector = *apic_.HighestDeliverable();
    apic_.Acknowledge(vector);
  }
  ++tally().interrupts_injected;
  run().ready_for_interrupt_injection = 0;  // until the next exit says so again
  return vcpu().Interrupt(vector.value);
}

std::string UserVcpu::DoingNow() {
  if (waiting_) {
    const bool lost =
        world().fault.kind == abi::Fault::kNoStart && world().fault.cpu == cpu().value;
    return lost ? "waiting for SIPI (its SIPIs are dropped: --fault=no-start)" : "waiting for SIPI";
  }
  const std::string interrupts = absl::StrCat("IF=", run().if_flag != 0 ? 1 : 0);
  return absl::StrCat(halted_ ? "halted, " : "running, ", interrupts, ", ", DescribePlace(vcpu()));
}

}  // namespace sipi
