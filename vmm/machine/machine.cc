#include "vmm/machine/machine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "vmm/base/limits.h"
#include "vmm/base/status_macros.h"
#include "vmm/cpu/host_limits.h"
#include "vmm/irqchip/kick_signal.h"
#include "vmm/kvm/linux_kvm.h"
#include "vmm/machine/signal_block.h"
#include "vmm/vcpu/kernel_vcpu.h"
#include "vmm/vcpu/reset_state.h"
#include "vmm/vcpu/user_vcpu.h"

namespace sipi {
namespace {

constexpr size_t kMainLogRecords = 64;
constexpr size_t kBootLogRecords = 4096;  // its charges and restarts; untouched pages cost nothing
constexpr size_t kApLogRecords = 64;
constexpr uint64_t kExtraThreads = 8;  // factory, sequencer, serial output, timer, and slack

// Records that a host-driven run may need: a handful per CPU and kick.
size_t SequencerLogRecords(const MachineOptions& options) {
  return options.driver == abi::Driver::kHost ? 64 + options.topology.cpu_count() * size_t{16} : 1;
}

std::vector<ApicId> IdsOf(const Topology& topology) {
  std::vector<ApicId> ids;
  for (const CpuPlace& place : topology.places) ids.push_back(place.apic_id);
  return ids;
}

apic::ApicMode ModelMode(abi::ApicMode mode) {
  return mode == abi::ApicMode::kX2Apic ? apic::ApicMode::kX2Apic : apic::ApicMode::kXApic;
}

}  // namespace

Machine::Machine(MachineOptions options)
    : options_(std::move(options)),
      log_(kMainLogRecords),
      threads_(options_.topology.cpu_count()),
      sequencer_log_(SequencerLogRecords(options_)) {
  const size_t side_events = SideEvents::kCapacity * size_t{options_.startups_per_cpu};
  for (uint32_t cpu = 0; cpu < cpus(); ++cpu) {
    mailboxes_.emplace_back(/*bsp=*/cpu == 0, side_events);
  }
  serial_output_ = MakeOutputStage(options_.serial_fd, options_.serial_buffer_bytes);
  serial_ = std::make_unique<Serial16550>(*serial_output_);
  world_.events = this;
  world_.profile = options_.profile;
  world_.fault = options_.fault;
  world_.seed = options_.seed;
  world_.apic_mode = options_.apic_mode;
  world_.firmware_present = options_.firmware_present || options_.board.has_value();
  world_.thread_delay_ns = options_.thread_delay_ns;
}

Machine::~Machine() {
  StopEverything();
  serial_output_->Finish(0);
}

absl::StatusOr<std::unique_ptr<Machine>> Machine::Create(MachineOptions options) {
  InstallKickSignal();
  std::unique_ptr<Machine> machine(new Machine(std::move(options)));
  RETURN_IF_ERROR(machine->CheckLimits());
  RETURN_IF_ERROR(machine->CreateVm());
  RETURN_IF_ERROR(machine->SetUpIrqchip());
  RETURN_IF_ERROR(machine->SetUpBoard());
  RETURN_IF_ERROR(machine->CreateBootCpu());
  machine->SetUpFactory();
  return machine;
}

absl::Status Machine::CheckLimits() {
  const uint64_t files = OpenFilesForVcpus(cpus());
  RETURN_IF_ERROR(EnsureOpenFiles(files));
  PregrowFileTable(files);
  RETURN_IF_ERROR(EnsureThreads(cpus() + kExtraThreads));
  return CheckApicMode(options_.topology, options_.apic_mode);
}

absl::Status Machine::CreateVm() {
  ASSIGN_OR_RETURN(kvm_, Kvm::Open({.path = options_.kvm_device, .hook = options_.ioctl_hook}));
  const KvmFacts& facts = kvm_->facts();
  RETURN_IF_ERROR(CheckHostLimits(options_.topology, facts.max_vcpus, facts.max_vcpu_ids,
                                  facts.recommended_vcpus)
                      .status());
  ASSIGN_OR_RETURN(vm_, Vm::Create(*kvm_));
  log_.Emit(abi::TraceEvent::kVmCreated);
  world_.sync_regs = facts.sync_regs;
  return vm_->SetTssAndIdentityMap();
}

// With 32-bit IDs KVM finds a CPU by its whole ID even in xAPIC mode, and takes two CPUs with one
// xAPIC ID for an error of the guest (kvm_recalculate_phys_map, arch/x86/kvm/lapic.c). A payload
// whose IDs need no more than 8 bits gets the APIC as it is.
absl::Status Machine::EnableX2ApicApi(std::span<const ApicId> ids) {
  const bool wide = std::any_of(ids.begin(), ids.end(),
                                [](ApicId id) { return id.value >= apic::kXApicBroadcast; });
  if (!options_.board || wide) return vm_->EnableX2ApicApi();
  return vm_->EnableCap(KVM_CAP_X2APIC_API, KVM_X2APIC_API_DISABLE_BROADCAST_QUIRK,
                        "KVM_CAP_X2APIC_API");
}

absl::Status Machine::SetUpIrqchip() {
  const std::vector<ApicId> ids = IdsOf(options_.topology);
  if (ids[0].value != 0) RETURN_IF_ERROR(vm_->SetBootCpuId(ids[0].value));
  if (options_.irqchip != IrqchipKind::kUser) {
    RETURN_IF_ERROR(EnableX2ApicApi(ids));
    sender_ = std::make_unique<MsiSender>(*vm_, ids);
    return options_.irqchip == IrqchipKind::kSplit ? vm_->CreateSplitIrqchip()
                                                   : vm_->CreateKernelIrqchip();
  }
  chip_ = std::make_unique<UserIrqchip>(
      ids, ModelMode(options_.apic_mode), options_.fault,
      [this](CpuNumber cpu) -> CpuMailbox& { return mailboxes_[cpu.value]; }, options_.kvm_icr);
  const uint32_t host = options_.driver == abi::Driver::kHost ? 1 : 0;
  const uint32_t timer = options_.board ? 1 : 0;
  ledger_ = std::make_unique<IdleLedger>(cpus() + host + timer);
  // The sequencer sleeps until the guest rings, the board's timer until it is programmed.
  for (uint32_t i = 0; i < host + timer; ++i) ledger_->Enter();
  world_.chip = chip_.get();
  world_.ledger = ledger_.get();
  sender_ = std::make_unique<MailboxSender>(*chip_);
  RETURN_IF_ERROR(vm_->EnableUserSpaceMsrs());
  // KVM would answer these two itself; the x2APIC's own MSRs come anyway, as it has no APIC.
  const uint32_t ours[] = {apic::kMsrApicBase, apic::kMsrTscDeadline};
  return vm_->DenyMsrs(ours);
}

absl::Status Machine::CreateBootCpu() {
  const CpuNumber boot(0);
  ASSIGN_OR_RETURN(Vcpu vcpu, vm_->CreateVcpu(apic_id(boot).value));
  ASSIGN_OR_RETURN(world_.tsc_khz, vcpu.TscKhz());
  ASSIGN_OR_RETURN(world_.tsc_offset, vcpu.TscOffset());
  ASSIGN_OR_RETURN(world_.reset_sregs, vm_->ResetSregs(vcpu));
  ASSIGN_OR_RETURN(const std::vector<kvm_cpuid_entry2> supported, kvm_->SupportedCpuid());
  CpuidOptions cpuid_options;
  cpuid_options.tsc_khz = world_.tsc_khz;
  cpuid_options.x2apic = !options_.hidden.x2apic;
  cpuid_options.tsc_deadline = !options_.hidden.tsc_deadline;
  cpuid_.emplace(supported, options_.topology, cpuid_options);
  if (const kvm_cpuid_entry2* leaf = FindCpuid(cpuid_->entries(), 1)) {
    world_.cpuid_signature = leaf->eax;
    world_.has_x2apic = (leaf->ecx >> 21 & 1) != 0;
    world_.has_tsc_deadline = (leaf->ecx >> 24 & 1) != 0;
  }
  if (const kvm_cpuid_entry2* leaf = FindCpuid(cpuid_->entries(), 0x80000008)) {
    world_.phys_addr_bits = leaf->eax & 0xff;
  }
  RETURN_IF_ERROR(vcpu.SetCpuid(cpuid_->ForCpu(boot)));
  threads_[0] = NewThread(boot, kBootLogRecords);
  threads_[0]->Adopt(std::move(vcpu));
  return absl::OkStatus();
}

void Machine::SetUpFactory() {
  factory_ = std::make_unique<VcpuFactory>(
      cpus(), [this](CpuNumber cpu) { return MakeAp(cpu); },
      [this](absl::Status status) {
        end_.Set({.kind = EndKind::kHostError,
                  .cpu = {},
                  .code = 0,
                  .text = {},
                  .error = std::move(status)});
      });
}

absl::StatusOr<Vcpu> Machine::CreateVcpu(CpuNumber cpu) {
  ASSIGN_OR_RETURN(Vcpu vcpu, vm_->CreateVcpu(apic_id(cpu).value));
  std::optional<ApicId> shown;
  const auto& lies = options_.firmware_lies;
  if (std::find(lies.begin(), lies.end(), cpu.value) != lies.end()) {
    shown = FirmwareLie(apic_id(cpu));
  }
  RETURN_IF_ERROR(vcpu.SetCpuid(cpuid_->ForCpu(cpu, shown)));
  // KVM's own APICs begin in xAPIC mode, and INIT leaves the mode alone (SDM vol 3A, 11.12.5.1).
  if (options_.irqchip != IrqchipKind::kUser && options_.apic_mode == abi::ApicMode::kX2Apic) {
    constexpr uint64_t kEnabled = apic::kApicBaseEnable | apic::kApicBaseX2Apic;
    RETURN_IF_ERROR(vcpu.SetMsr(apic::kMsrApicBase, apic::kApicBaseGpa | kEnabled));
  }
  return vcpu;
}

absl::Status Machine::MakeAp(CpuNumber cpu) {
  absl::StatusOr<Vcpu> vcpu = CreateVcpu(cpu);
  if (!vcpu.ok()) {
    return absl::Status(vcpu.status().code(), absl::StrCat("vCPU ", cpu.value + 1, " of ", cpus(),
                                                           ": ", vcpu.status().message()));
  }
  std::unique_ptr<VcpuThread> thread =
      NewThread(cpu, kApLogRecords * size_t{options_.startups_per_cpu});
  thread->Adopt(std::move(*vcpu));
  VcpuThread& launched = *thread;
  threads_[cpu.value] = std::move(thread);
  return launched.Launch();
}

std::unique_ptr<VcpuThread> Machine::NewThread(CpuNumber cpu, size_t log_records) {
  CpuMailbox& mailbox = mailboxes_[cpu.value];
  if (options_.irqchip == IrqchipKind::kUser) {
    return std::make_unique<UserVcpu>(world_, cpu, apic_id(cpu), mailbox, log_records);
  }
  return std::make_unique<KernelVcpu>(world_, cpu, mailbox, log_records);
}

absl::Status Machine::SetMemory(GuestMemory memory) {
  memory_.emplace(std::move(memory));
  world_.memory.store(&*memory_, std::memory_order_release);
  return memory_->RegisterWith(*vm_);
}

absl::Status Machine::SetBootState(const std::function<void(kvm_regs&, kvm_sregs&)>& change) {
  const apic::CpuResetState reset = apic::StateAfterPowerOn(world_.cpuid_signature);
  kvm_regs regs = RegsOf(reset);
  kvm_sregs sregs = SregsOf(reset, world_.reset_sregs);
  sregs.apic_base = apic::kApicBaseGpa | apic::kApicBaseEnable | apic::kApicBaseBsp;
  if (options_.apic_mode == abi::ApicMode::kX2Apic) sregs.apic_base |= apic::kApicBaseX2Apic;
  change(regs, sregs);
  return threads_[0]->SetState(regs, sregs);
}

void Machine::SetSequence(HostSequence sequence) {
  sequencer_ = std::make_unique<HostSequencer>(std::move(sequence), *sender_, sequencer_log_);
}

}  // namespace sipi
