#include "vmm/kvm/vm.h"

#include <sys/mman.h>

#include <cerrno>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "apic/regs/registers.h"
#include "vmm/base/errno_status.h"

namespace sipi {
namespace {

// Below the flash and the APIC page, in the hole that GuestMemory leaves; four pages from here.
constexpr uint64_t kIdentityMapGpa = 0xfeffc000;
constexpr uint64_t kTssGpa = kIdentityMapGpa + 0x1000;

absl::Status Failed(absl::string_view what, absl::string_view remedy = "") {
  return ErrnoStatus(errno, what, remedy);
}

const char* CreateVcpuRemedy(int error) {
  switch (error) {
    case ENOMEM:
      return "free memory or use fewer --cpus";
    case EMFILE:
      return "raise the limit of open files (ulimit -n) or use fewer --cpus";
    case EINVAL:
      return "this KVM allows no more vCPUs or no such id; see sipi doctor for its limits";
    case EEXIST:
      return "two CPUs have the same APIC ID";
    default:
      return "use fewer --cpus";
  }
}

}  // namespace

struct Vm::ResetCache {
  std::mutex mu;  // guards sregs
  std::optional<kvm_sregs> sregs;
};

Vm::Vm(IoctlFd fd, const KvmFacts& facts)
    : fd_(std::move(fd)), facts_(facts), reset_(std::make_unique<ResetCache>()) {}
Vm::Vm(Vm&&) noexcept = default;
Vm& Vm::operator=(Vm&&) noexcept = default;
Vm::~Vm() = default;

absl::StatusOr<Vm> Vm::Create(const Kvm& kvm) {
  int fd = -1;
  // KVM_CREATE_VM returns EINTR if a signal comes while it waits for memory notifiers.
  do {
    fd = kvm.device().Call(KVM_CREATE_VM);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return Failed("KVM_CREATE_VM", "see sipi doctor");
  return Vm(IoctlFd(UniqueFd(fd), kvm.device().hook()), kvm.facts());
}

absl::Status Vm::EnableCap(uint32_t capability, uint64_t arg0, absl::string_view name) {
  kvm_enable_cap enable = {};
  enable.cap = capability;
  enable.args[0] = arg0;
  if (fd_.Call(KVM_ENABLE_CAP, &enable) < 0) {
    return Failed(absl::StrCat("KVM_ENABLE_CAP(", name, ")"), "a newer kernel may have it");
  }
  return absl::OkStatus();
}

absl::Status Vm::SetMemoryRegion(uint32_t slot, Gpa gpa, uint64_t bytes, void* host) {
  kvm_userspace_memory_region region = {};
  region.slot = slot;
  region.guest_phys_addr = gpa.value;
  region.memory_size = bytes;
  region.userspace_addr = reinterpret_cast<uintptr_t>(host);
  if (fd_.Call(KVM_SET_USER_MEMORY_REGION, &region) < 0) {
    return Failed(absl::StrCat("KVM_SET_USER_MEMORY_REGION(slot=", slot, ", gpa=0x",
                               absl::Hex(gpa.value), ", bytes=", bytes, ")"),
                  "use less memory");
  }
  return absl::OkStatus();
}

absl::Status Vm::SetTssAndIdentityMap() {
  uint64_t identity_map = kIdentityMapGpa;
  if (fd_.Call(KVM_SET_IDENTITY_MAP_ADDR, &identity_map) < 0) {
    return Failed("KVM_SET_IDENTITY_MAP_ADDR");
  }
  if (fd_.Call(KVM_SET_TSS_ADDR, kTssGpa) < 0) return Failed("KVM_SET_TSS_ADDR");
  return absl::OkStatus();
}

absl::Status Vm::CreateKernelIrqchip() {
  if (fd_.Call(KVM_CREATE_IRQCHIP) < 0) return Failed("KVM_CREATE_IRQCHIP", "use --irqchip=user");
  return absl::OkStatus();
}

absl::Status Vm::CreatePit2() {
  kvm_pit_config config = {};
  config.flags = KVM_PIT_SPEAKER_DUMMY;
  if (fd_.Call(KVM_CREATE_PIT2, &config) < 0) return Failed("KVM_CREATE_PIT2");
  return absl::OkStatus();
}

void Vm::SetIrqLine(uint32_t gsi, bool high) const {
  kvm_irq_level line = {};
  line.irq = gsi;
  line.level = high ? 1 : 0;
  fd_.Call(KVM_IRQ_LINE, &line);
}

bool Vm::TimerMayInterrupt() const {
  kvm_pit_state2 pit = {};
  kvm_irqchip pic = {};
  pic.chip_id = KVM_IRQCHIP_PIC_MASTER;
  kvm_irqchip io_apic = {};
  io_apic.chip_id = KVM_IRQCHIP_IOAPIC;
  if (fd_.Call(KVM_GET_PIT2, &pit) < 0 || fd_.Call(KVM_GET_IRQCHIP, &pic) < 0 ||
      fd_.Call(KVM_GET_IRQCHIP, &io_apic) < 0) {
    return true;
  }
  constexpr uint8_t kNeverProgrammed = 0xff;  // kvm_pit_reset_reinject, arch/x86/kvm/i8254.c
  constexpr uint32_t kTimerInput = 2;
  if (pit.channels[0].mode == kNeverProgrammed) return false;
  const bool pic_listens = (pic.chip.pic.imr & 1) == 0 && pic.chip.pic.init4 != 0;
  return pic_listens || io_apic.chip.ioapic.redirtbl[kTimerInput].fields.mask == 0;
}

absl::Status Vm::ProgramPicsAsFirmware() {
  struct Half {
    uint32_t chip;
    uint8_t vector;
  };
  for (const Half& half : {Half{KVM_IRQCHIP_PIC_MASTER, 0x08}, Half{KVM_IRQCHIP_PIC_SLAVE, 0x70}}) {
    kvm_irqchip chip = {};
    chip.chip_id = half.chip;
    if (fd_.Call(KVM_GET_IRQCHIP, &chip) < 0) return Failed("KVM_GET_IRQCHIP");
    chip.chip.pic.irq_base = half.vector;
    chip.chip.pic.init4 = 1;
    chip.chip.pic.imr = 0;
    if (fd_.Call(KVM_SET_IRQCHIP, &chip) < 0) return Failed("KVM_SET_IRQCHIP");
  }
  return absl::OkStatus();
}

absl::Status Vm::SetMsiRoutes(std::span<const apic::Icr> messages) const {
  // A struct that ends in an array of the caller's length.
  const size_t bytes = sizeof(kvm_irq_routing) + messages.size() * sizeof(kvm_irq_routing_entry);
  std::vector<uint64_t> storage((bytes + 7) / 8);
  auto* const routing = reinterpret_cast<kvm_irq_routing*>(storage.data());
  routing->nr = static_cast<uint32_t>(messages.size());
  for (size_t i = 0; i < messages.size(); ++i) {
    const MsiMessage message = MsiFor(messages[i]);
    kvm_irq_routing_entry& entry = routing->entries[i];
    entry.gsi = static_cast<uint32_t>(i);
    entry.type = KVM_IRQ_ROUTING_MSI;
    entry.u.msi.address_lo = message.address_lo;
    entry.u.msi.address_hi = message.address_hi;
    entry.u.msi.data = message.data;
  }
  if (fd_.Call(KVM_SET_GSI_ROUTING, routing) < 0) {
    return Failed(absl::StrCat("KVM_SET_GSI_ROUTING(nr=", messages.size(), ")"));
  }
  return absl::OkStatus();
}

absl::Status Vm::CreateSplitIrqchip(uint32_t ioapic_routes) {
  return EnableCap(KVM_CAP_SPLIT_IRQCHIP, ioapic_routes, "KVM_CAP_SPLIT_IRQCHIP");
}

absl::Status Vm::EnableX2ApicApi() {
  return EnableCap(KVM_CAP_X2APIC_API,
                   KVM_X2APIC_API_USE_32BIT_IDS | KVM_X2APIC_API_DISABLE_BROADCAST_QUIRK,
                   "KVM_CAP_X2APIC_API");
}

absl::Status Vm::EnableUserSpaceMsrs(uint32_t reasons) {
  return EnableCap(KVM_CAP_X86_USER_SPACE_MSR, reasons, "KVM_CAP_X86_USER_SPACE_MSR");
}

absl::Status Vm::DenyMsrs(std::span<const uint32_t> msrs) {
  kvm_msr_filter filter = {};
  if (msrs.size() > KVM_MSR_FILTER_MAX_RANGES) {
    return absl::InvalidArgumentError(absl::StrCat("KVM_X86_SET_MSR_FILTER: ", msrs.size(),
                                                   " MSRs, at most ", KVM_MSR_FILTER_MAX_RANGES));
  }
  filter.flags = KVM_MSR_FILTER_DEFAULT_ALLOW;
  // One range per MSR, its bitmap a single clear bit: denied. KVM copies it during the call.
  uint8_t denied[8] = {};
  for (size_t i = 0; i < msrs.size(); ++i) {
    filter.ranges[i] = {.flags = KVM_MSR_FILTER_READ | KVM_MSR_FILTER_WRITE,
                        .nmsrs = 1,
                        .base = msrs[i],
                        .bitmap = denied};
  }
  if (fd_.Call(KVM_X86_SET_MSR_FILTER, &filter) < 0) return Failed("KVM_X86_SET_MSR_FILTER");
  return absl::OkStatus();
}

absl::StatusOr<bool> Vm::SignalMsi(const apic::Icr& icr) const {
  const MsiMessage message = MsiFor(icr);
  kvm_msi msi = {};
  msi.address_lo = message.address_lo;
  msi.address_hi = message.address_hi;
  msi.data = message.data;
  const int delivered = fd_.Call(KVM_SIGNAL_MSI, &msi);
  // -1 also comes for a destination that no vCPU has: kvm_irq_delivery_to_apic's "nobody".
  if (delivered < 0 && errno == EPERM) return false;
  if (delivered < 0) {
    return Failed(absl::StrCat("KVM_SIGNAL_MSI(apic id=", icr.dest, ")"));
  }
  return delivered > 0;
}

absl::StatusOr<Vcpu> Vm::CreateVcpu(uint32_t id) {
  const int fd = fd_.Call(KVM_CREATE_VCPU, uint64_t{id});
  if (fd < 0) {
    return Failed(absl::StrCat("KVM_CREATE_VCPU(id=", id, ")"), CreateVcpuRemedy(errno));
  }
  IoctlFd vcpu(UniqueFd(fd), fd_.hook());
  void* run = mmap(nullptr, facts_.vcpu_mmap_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (run == MAP_FAILED) {
    return Failed(absl::StrCat("mmap of kvm_run (vcpu id=", id, ")"),
                  "raise vm.max_map_count or use fewer --cpus");
  }
  return Vcpu(std::move(vcpu), id, static_cast<kvm_run*>(run), facts_.vcpu_mmap_bytes);
}

absl::Status Vm::SetBootCpuId(uint32_t id) {
  if (fd_.Call(KVM_SET_BOOT_CPU_ID, uint64_t{id}) < 0) {
    return Failed(absl::StrCat("KVM_SET_BOOT_CPU_ID(", id, ")"));
  }
  return absl::OkStatus();
}

absl::StatusOr<kvm_sregs> Vm::ResetSregs(const Vcpu& fresh) {
  const std::lock_guard lock(reset_->mu);
  if (!reset_->sregs.has_value()) {
    auto sregs = fresh.GetSregs();
    if (!sregs.ok()) return std::move(sregs).status();
    sregs->apic_base &= ~apic::kApicBaseBsp;
    reset_->sregs = *sregs;
  }
  return *reset_->sregs;
}

MsiMessage MsiFor(const apic::Icr& icr) {
  constexpr uint32_t kMsiAddress = 0xfee00000;
  constexpr uint32_t kMsiLogical = 1u << 2;  // destination mode, with RH (bit 3) 0
  MsiMessage message;
  message.address_lo = kMsiAddress | (icr.dest & 0xff) << 12 | (icr.logical ? kMsiLogical : 0);
  message.address_hi = icr.dest & 0xffffff00;
  message.data = static_cast<uint32_t>(icr.vector.value) | static_cast<uint32_t>(icr.mode) << 8 |
                 (icr.assert_level ? apic::kIcrAssert : 0) |
                 (icr.level_triggered ? apic::kIcrLevelTriggered : 0);
  return message;
}

}  // namespace sipi
