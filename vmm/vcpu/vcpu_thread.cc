#include "vmm/vcpu/vcpu_thread.h"

#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "vmm/device/monotonic_clock.h"
#include "vmm/irqchip/kick_signal.h"
#include "vmm/kvm/linux_kvm.h"
#include "vmm/load/firmware.h"
#include "vmm/vcpu/fault_report.h"
#include "vmm/vcpu/reset_state.h"

namespace sipi {
namespace {

// meson.build knows of sanitizers, whichever compiler brings them.
constexpr size_t kStackBytes = size_t{SIPI_VCPU_STACK_KIB} * 1024;

bool WantsCompletion(uint32_t exit_reason) {
  return exit_reason == KVM_EXIT_IO || exit_reason == KVM_EXIT_MMIO ||
         exit_reason == KVM_EXIT_X86_RDMSR || exit_reason == KVM_EXIT_X86_WRMSR;
}

}  // namespace

VcpuThread::VcpuThread(const VcpuWorld& world, CpuNumber cpu, CpuMailbox& mailbox,
                       size_t log_records)
    : world_(world), cpu_(cpu), mailbox_(mailbox), log_(log_records), dice_(world.seed, cpu) {}

VcpuThread::~VcpuThread() { Join(); }

void VcpuThread::Adopt(Vcpu vcpu) {
  vcpu_ = std::move(vcpu);
  log_.Emit(abi::TraceEvent::kVcpuCreated);
}

absl::Status VcpuThread::SetState(const kvm_regs& regs, const kvm_sregs& sregs) {
  if (absl::Status status = vcpu_.SetSregs(sregs); !status.ok()) return status;
  return vcpu_.SetRegs(regs);
}

absl::Status VcpuThread::Launch() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  const int error = pthread_create(&thread_, &attributes, &VcpuThread::ThreadMain, this);
  pthread_attr_destroy(&attributes);
  if (error != 0) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "pthread_create for CPU ", cpu_.value, ": ", std::strerror(error),
        "; raise the limit of threads (ulimit -u, pids.max, kernel.threads-max) or use fewer "
        "--cpus"));
  }
  launched_ = true;
  return absl::OkStatus();
}

void VcpuThread::Join() {
  if (launched_) pthread_join(thread_, nullptr);
  launched_ = false;
}

void* VcpuThread::ThreadMain(void* self) {
  static_cast<VcpuThread*>(self)->Loop();
  return nullptr;
}

void VcpuThread::Loop() {
  char name[16];
  std::snprintf(name, sizeof name, "vcpu/%u", cpu_.value);
  prctl(PR_SET_NAME, name);
  mailbox_.SetThread(gettid());
  const KickScope kicks(vcpu_);
  log_.Emit(abi::TraceEvent::kThreadStarted);
  if (world_.thread_delay_ns) HoldFor(world_.thread_delay_ns(cpu_));
  while (true) {
    switch (Prepare()) {
      case Next::kAgain:
        continue;
      case Next::kLeave:
        return;
      case Next::kEnter:
        break;
    }
    if (mailbox_.EnterGuest() && !RunOnce()) return;
  }
}

bool VcpuThread::RunOnce() {
  const RunResult result = vcpu_.Run();
  mailbox_.LeaveGuest();
  vcpu_.ClearImmediateExit();
  exit_pending_ = false;
  switch (result.state) {
    case RunState::kExit:
      exit_pending_ = WantsCompletion(run().exit_reason);
      counters_.CountExit(run().exit_reason);
      AfterRun();
      return HandleExit();
    case RunState::kInterrupted:
      ++counters_.interrupted_runs;
      AfterRun();
      return true;
    case RunState::kAgain:
      OnAgain();
      return true;
    case RunState::kFailed:
      break;
  }
  Fault(
      absl::StrCat("KVM_RUN on CPU ", cpu_.value, ": ", std::strerror(result.error), "; ",
                   DescribeRegisters(cpu_, vcpu_, world_.memory.load(std::memory_order_acquire))));
  return false;
}

bool VcpuThread::HandleExit() {
  switch (run().exit_reason) {
    case KVM_EXIT_IO:
      return HandleIo();
    case KVM_EXIT_INTR:
      return true;
    case KVM_EXIT_SHUTDOWN:
    case KVM_EXIT_FAIL_ENTRY:
    case KVM_EXIT_INTERNAL_ERROR:
    case KVM_EXIT_SYSTEM_EVENT:
      break;
    default:
      if (HandleChipExit()) return true;
      break;
  }
  Fault(DescribeFatalExit(cpu_, vcpu_, world_.memory.load(std::memory_order_acquire)));
  return false;
}

bool VcpuThread::HandleIo() {
  const auto io = run().io;
  if (io.direction == KVM_EXIT_IO_IN) {
    if (!world_.ports->Read(io.port, io.size, vcpu_.io_data())) ++counters_.unhandled_io;
    return true;
  }
  const PortBus::WriteResult result = world_.ports->Write(io.port, io.size, vcpu_.io_data());
  if (!result.handled) ++counters_.unhandled_io;
  return HandlePortAction(result.action);
}

bool VcpuThread::HandlePortAction(const PortAction& action) {
  switch (action.kind) {
    case PortAction::Kind::kNone:
      return true;
    case PortAction::Kind::kExit:
      world_.events->OnGuestExit(cpu_, action.value);
      return false;
    case PortAction::Kind::kDoorbell:
      world_.events->OnDoorbell(cpu_, static_cast<abi::Doorbell>(action.value));
      return true;
    case PortAction::Kind::kYield:
      Yield();
      return true;
    case PortAction::Kind::kCharge:
      Charge(static_cast<abi::Charge>(action.value));
      return true;
    case PortAction::Kind::kInitLine:
      world_.events->OnInitLine(cpu_);
      return true;
    case PortAction::Kind::kSystemReset:
      world_.events->OnSystemReset(cpu_, action.value);
      return false;
    case PortAction::Kind::kFirmware:
      return EnterPayload();
    case PortAction::Kind::kFlushPage:
      world_.events->OnFlushPage(Gpa(action.value));
      return true;
  }
  return true;
}

// The port is the firmware's. A guest that writes there finds nothing.
bool VcpuThread::InFirmware() {
  const absl::StatusOr<kvm_regs> regs = vcpu_.GetRegs();
  const absl::StatusOr<kvm_sregs> sregs = vcpu_.GetSregs();
  if (!regs.ok() || !sregs.ok()) return false;
  const uint64_t linear = (sregs->cs.base + regs->rip) & 0xffff'ffff;
  return linear - kFirmwareGpa.value < kFirmwareBytes ||
         linear - kFirmwareCopyGpa.value < kFirmwareBytes;
}

bool VcpuThread::EnterPayload() {
  if (!InFirmware()) {
    ++counters_.unhandled_io;
    return true;
  }
  CompletePendingExit();
  const absl::Status status = world_.events->OnFirmware([this](const StateChange& change) {
    const absl::StatusOr<kvm_sregs> now = vcpu_.GetSregs();
    if (!now.ok()) return now.status();
    const apic::CpuResetState reset = apic::StateAfterPowerOn(world_.cpuid_signature);
    kvm_regs regs = RegsOf(reset);
    kvm_sregs sregs = SregsOf(reset, world_.reset_sregs);
    sregs.apic_base = now->apic_base;
    change(regs, sregs);
    HandOver();
    return SetState(regs, sregs);
  });
  if (status.ok()) return true;
  Fault(absl::StrCat("CPU ", cpu_.value, " cannot start over: ", status.message()));
  return false;
}

void VcpuThread::Yield() {
  ++counters_.yields;
  sched_yield();
}

void VcpuThread::Charge(abi::Charge kind) {
  switch (kind) {
    case abi::Charge::kNone:
      return;
    case abi::Charge::kStartup:
      return Impose(kind, world_.profile.startup);
    case abi::Charge::kInit:
      return Impose(kind, world_.profile.init);
    case abi::Charge::kMicrocode:
      return Impose(kind, world_.profile.microcode);
    case abi::Charge::kCacheSetup:
      return Impose(kind, world_.profile.cache_setup);
    case abi::Charge::kIdentify:
      return Impose(kind, world_.profile.identify);
    case abi::Charge::kOnlineSteps:
      return Impose(kind, world_.profile.online_steps);
    case abi::Charge::kSchedDomains:
      return Impose(kind, world_.profile.sched_domains);
  }
  ++counters_.unhandled_io;  // a kind that the guest made up
}

void VcpuThread::Impose(abi::Charge kind, const Latency& latency) {
  const uint64_t ns = dice_.Draw(latency);
  if (ns == 0) return;
  log_.Emit(abi::TraceEvent::kImposedBegin, 0, static_cast<uint32_t>(kind));
  HoldFor(ns);
  log_.Emit(abi::TraceEvent::kImposedEnd, 0, static_cast<uint32_t>(kind));
  ++counters_.imposed_sleeps;
  counters_.imposed_ns += ns;
}

void VcpuThread::HoldFor(uint64_t ns) {
  if (ns == 0) return;
  const uint64_t until = MonotonicNs() + ns;
  SleepPrecisely();
  mailbox_.Sleep(CpuMailbox::kStop, until);
}

void VcpuThread::SleepPrecisely() {
  if (!precise_) prctl(PR_SET_TIMERSLACK, 1ul);  // nanoseconds; the default is 50 us
  precise_ = true;
}

void VcpuThread::Fault(std::string diagnosis) {
  faulted_ = true;
  world_.events->OnFault(cpu_, std::move(diagnosis));
}

void VcpuThread::BoardMmio() {
  auto& mmio = run().mmio;
  const Gpa at(mmio.phys_addr);
  const std::span<std::byte> data(reinterpret_cast<std::byte*>(mmio.data),
                                  std::min<size_t>(mmio.len, sizeof mmio.data));
  if (world_.board != nullptr) {
    if (mmio.is_write != 0 ? world_.board->WriteMmio(at, data) : world_.board->ReadMmio(at, data)) {
      return;
    }
  }
  ++counters_.unhandled_mmio;
  if (mmio.is_write == 0) std::memset(mmio.data, 0xff, sizeof mmio.data);
}

void VcpuThread::CompletePendingExit() {
  if (!exit_pending_) return;
  exit_pending_ = false;
  // With immediate_exit KVM_RUN finishes the access and returns before any guest code runs. An
  // access that takes several exits (a long MMIO) exits again; it is given up with the CPU's state.
  vcpu_.RequestImmediateExit();
  vcpu_.Run();
  vcpu_.ClearImmediateExit();
}

std::string VcpuThread::Doing() {
  if (!vcpu_.valid()) return "not created";
  CompletePendingExit();
  return DoingNow();
}

}  // namespace sipi
