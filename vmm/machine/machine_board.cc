// The machine's board: who its interrupt lines reach, its firmware, its resets.
#include <sys/mman.h>

#include <memory>
#include <utility>
#include <vector>

#include "vmm/base/status_macros.h"
#include "vmm/board/kvm_lines.h"
#include "vmm/load/firmware.h"
#include "vmm/machine/machine.h"
#include "vmm/machine/signal_block.h"

namespace sipi {
namespace {

constexpr uint32_t kFirmwareSlot = 2;  // GuestMemory has 0 and 1
constexpr uint64_t kPageBytes = 4096;

}  // namespace

absl::Status Machine::SetUpBoard() {
  if (options_.board) {
    std::unique_ptr<InterruptLines> lines;
    if (options_.irqchip == IrqchipKind::kKernel) {
      RETURN_IF_ERROR(vm_->SetPcRoutes());
      RETURN_IF_ERROR(vm_->CreatePit2());
      RETURN_IF_ERROR(vm_->ProgramPicsAsFirmware());
      lines = std::make_unique<KvmLines>(*vm_);
    } else {
      std::unique_ptr<UserLines> user = MakeUserLines();
      user->ProgramAsFirmware();
      user_lines_ = user.get();
      lines = std::move(user);
    }
    board_ = std::make_unique<Board>(options_.board->ram_bytes, cpus(), std::move(lines));
  }
  ports_ = std::make_unique<PortBus>(*serial_, board_.get());
  world_.board = board_.get();
  world_.ports = ports_.get();
  return absl::OkStatus();
}

std::unique_ptr<UserLines> Machine::MakeUserLines() {
  UserLines::Outputs outputs;
  outputs.int_pin_rose = [this] { mailboxes_[0].Post(CpuMailbox::kIntPin); };
  outputs.timer_idle = [this](bool idle) {
    if (ledger_ == nullptr) return;
    if (!idle) {
      ledger_->Leave();
    } else if (ledger_->Enter()) {
      CheckAllIdle();
    }
  };
  if (options_.irqchip == IrqchipKind::kUser) {
    outputs.send = [this](const IoApicMessage& message) {
      return chip_->SendDevice(message, board_sends_);
    };
  } else {
    outputs.send = [this](const IoApicMessage& message) {
      ++board_sends_.ipis;
      // Nobody there, or an APIC that is still disabled: the guest's affair.
      const bool accepted = vm_->SignalMsi(message).value_or(false);
      if (!accepted) ++board_sends_.undeliverable;
      return accepted;
    };
    outputs.routes_changed = [this] { UpdateMsiRoutes(); };
  }
  return std::make_unique<UserLines>(std::move(outputs));
}

// Tells KVM of which vectors the end is to exit: those of the level-triggered entries.
void Machine::UpdateMsiRoutes() {
  std::vector<apic::Icr> messages;
  for (uint32_t input = 0; input < kIoApicInputs; ++input) {
    messages.push_back(IoApicMessageOf(user_lines_->EntryLocked(input)));
  }
  const absl::Status status = vm_->SetMsiRoutes(messages);
  if (status.ok()) return;
  end_.Set({.kind = EndKind::kHostError, .cpu = {}, .code = 0, .text = {}, .error = status});
}

absl::Status Machine::SetFirmware(LoadFn load) {
  load_ = std::move(load);
  threads_[0]->HandOver();
  ASSIGN_OR_RETURN(firmware_, GuestMemory::Create(kFirmwareBytes));
  RETURN_IF_ERROR(firmware_->Write(Gpa(0), FirmwarePage()));
  RETURN_IF_ERROR(vm_->SetMemoryRegion(kFirmwareSlot, kFirmwareGpa, kFirmwareBytes,
                                       firmware_->Pointer(Gpa(0), kFirmwareBytes)));
  return WriteFirmwareCopy(*memory_);
}

void Machine::OnInitLine(CpuNumber /*cpu*/) {
  const std::lock_guard lock(init_line_mutex_);
  for (uint32_t cpu = 0; cpu < cpus(); ++cpu) {
    if (chip_ != nullptr) {
      chip_->SendInit(CpuNumber(cpu), init_line_sends_);
      continue;
    }
    const absl::Status status = sender_->SendInit(CpuNumber(cpu));
    if (status.ok()) continue;
    end_.Set({.kind = EndKind::kHostError, .cpu = {}, .code = 0, .text = {}, .error = status});
  }
}

void Machine::OnSystemReset(CpuNumber cpu, uint32_t port) {
  end_.Set({.kind = EndKind::kGuestReset, .cpu = cpu, .code = port, .text = {}, .error = {}});
}

absl::Status Machine::OnFirmware(const EnterState& enter) {
  if (!load_) return absl::FailedPreconditionError("this machine has no payload to load");
  RETURN_IF_ERROR(WriteFirmwareCopy(*memory_));
  return load_(*memory_, enter);
}

// What KVM has mapped of the page goes when the host's page loses its permissions; the next access
// faults it in again. Another CPU's access in between makes its KVM_RUN fail with EFAULT, so the
// device is for a guest whose other CPUs leave the page alone.
void Machine::OnFlushPage(Gpa page) {
  std::byte* const host = memory_->Pointer(page, kPageBytes);
  if (host == nullptr) return;
  mprotect(host, kPageBytes, PROT_NONE);
  mprotect(host, kPageBytes, PROT_READ | PROT_WRITE);
}

bool Machine::TimerMayInterrupt() const {
  if (board_ == nullptr) return false;
  return user_lines_ != nullptr ? !user_lines_->timer_idle() : vm_->TimerMayInterrupt();
}

}  // namespace sipi
