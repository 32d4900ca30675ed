#include "vmm/kvm/vcpu.h"

#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "vmm/base/errno_status.h"
#include "vmm/base/tsc.h"
#include "vmm/kvm/binary_stats.h"
#include "vmm/kvm/cpuid_buffer.h"

namespace sipi {
namespace {

constexpr uint32_t kMsrTsc = 0x10;  // IA32_TIME_STAMP_COUNTER

// struct kvm_msrs with one entry.
struct OneMsr {
  uint32_t nmsrs = 1;
  uint32_t pad = 0;
  kvm_msr_entry entry = {};
};
static_assert(offsetof(OneMsr, entry) == sizeof(kvm_msrs) && sizeof(kvm_msrs) == 8);

}  // namespace

Vcpu::Vcpu(Vcpu&& other) noexcept
    : fd_(std::move(other.fd_)),
      id_(other.id_),
      run_(std::exchange(other.run_, nullptr)),
      run_bytes_(other.run_bytes_) {}

Vcpu& Vcpu::operator=(Vcpu&& other) noexcept {
  if (this == &other) return *this;
  if (run_ != nullptr) munmap(run_, run_bytes_);
  fd_ = std::move(other.fd_);
  id_ = other.id_;
  run_ = std::exchange(other.run_, nullptr);
  run_bytes_ = other.run_bytes_;
  return *this;
}

Vcpu::~Vcpu() {
  if (run_ != nullptr) munmap(run_, run_bytes_);
}

absl::Status Vcpu::Failed(absl::string_view ioctl_name) const {
  return ErrnoStatus(errno, absl::StrCat(ioctl_name, "(vcpu id=", id_, ")"));
}

RunResult Vcpu::Run() {
  if (fd_.Call(KVM_RUN) == 0) return {};
  switch (errno) {
    case EINTR:
      return {RunState::kInterrupted, EINTR};
    case EAGAIN:
      return {RunState::kAgain, EAGAIN};
    default:
      return {RunState::kFailed, errno};
  }
}

void Vcpu::RequestImmediateExit() {
  std::atomic_ref<__u8>(run_->immediate_exit).store(1, std::memory_order_relaxed);
}

void Vcpu::ClearImmediateExit() {
  std::atomic_ref<__u8>(run_->immediate_exit).store(0, std::memory_order_relaxed);
}

absl::StatusOr<uint64_t> Vcpu::GetMsr(uint32_t index) const {
  OneMsr msrs;
  msrs.entry.index = index;
  // The result is the number of MSRs read: 0 if KVM refuses this one.
  const int done = fd_.Call(KVM_GET_MSRS, &msrs);
  if (done < 0) return Failed("KVM_GET_MSRS");
  if (done != 1) {
    return absl::NotFoundError(
        absl::StrCat("KVM_GET_MSRS(vcpu id=", id_, "): KVM has no MSR 0x", absl::Hex(index)));
  }
  return msrs.entry.data;
}

absl::Status Vcpu::SetMsr(uint32_t index, uint64_t value) {
  OneMsr msrs;
  msrs.entry.index = index;
  msrs.entry.data = value;
  const int done = fd_.Call(KVM_SET_MSRS, &msrs);
  if (done < 0) return Failed("KVM_SET_MSRS");
  if (done != 1) {
    return absl::InvalidArgumentError(absl::StrCat("KVM_SET_MSRS(vcpu id=", id_,
                                                   "): KVM refuses 0x", absl::Hex(value),
                                                   " for MSR 0x", absl::Hex(index)));
  }
  return absl::OkStatus();
}

absl::Status Vcpu::SetCpuid(std::span<const kvm_cpuid_entry2> entries) {
  if (entries.size() > kMaxCpuidEntries) {
    return absl::InvalidArgumentError(absl::StrCat("KVM_SET_CPUID2(vcpu id=", id_,
                                                   "): ", entries.size(), " entries, KVM takes ",
                                                   kMaxCpuidEntries));
  }
  CpuidBuffer buffer;
  buffer.header.nent = static_cast<uint32_t>(entries.size());
  memcpy(buffer.entries, entries.data(), entries.size_bytes());
  if (fd_.Call(KVM_SET_CPUID2, &buffer) < 0) return Failed("KVM_SET_CPUID2");
  return absl::OkStatus();
}

absl::Status Vcpu::Interrupt(uint8_t vector) {
  kvm_interrupt interrupt = {.irq = vector};
  if (fd_.Call(KVM_INTERRUPT, &interrupt) < 0) return Failed("KVM_INTERRUPT");
  return absl::OkStatus();
}

absl::Status Vcpu::Nmi() {
  if (fd_.Call(KVM_NMI) < 0) return Failed("KVM_NMI");
  return absl::OkStatus();
}

absl::Status Vcpu::SetSignalMask(const sigset_t& blocked) {
  // The kernel's signal set has 64 bits; glibc's has room for more.
  constexpr uint32_t kKernelSigsetBytes = 8;
  struct {
    uint32_t bytes = kKernelSigsetBytes;
    uint8_t set[kKernelSigsetBytes];
  } mask;
  static_assert(offsetof(decltype(mask), set) == sizeof(kvm_signal_mask));
  static_assert(sizeof(kvm_signal_mask) == 4);
  memcpy(mask.set, &blocked, kKernelSigsetBytes);
  if (fd_.Call(KVM_SET_SIGNAL_MASK, &mask) < 0) return Failed("KVM_SET_SIGNAL_MASK");
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> Vcpu::TscKhz() const {
  const int khz = fd_.Call(KVM_GET_TSC_KHZ);
  if (khz < 0) return Failed("KVM_GET_TSC_KHZ");
  return static_cast<uint32_t>(khz);
}

absl::StatusOr<int64_t> Vcpu::TscOffset() const {
  uint64_t offset = 0;
  kvm_device_attr attribute = {};
  attribute.group = KVM_VCPU_TSC_CTRL;
  attribute.attr = KVM_VCPU_TSC_OFFSET;
  attribute.addr = reinterpret_cast<uintptr_t>(&offset);
  if (fd_.Call(KVM_GET_DEVICE_ATTR, &attribute) == 0) return static_cast<int64_t>(offset);
  const uint64_t before = ReadTsc();
  const absl::StatusOr<uint64_t> guest = GetMsr(kMsrTsc);
  const uint64_t after = ReadTsc();
  if (!guest.ok()) return guest.status();
  return static_cast<int64_t>(*guest - (before + (after - before) / 2));
}

std::span<std::byte> Vcpu::io_data() {
  return {reinterpret_cast<std::byte*>(run_) + run_->io.data_offset,
          size_t{run_->io.size} * run_->io.count};
}

absl::StatusOr<uint64_t> Vcpu::ReadStat(absl::string_view name) const {
  const int fd = fd_.Call(KVM_GET_STATS_FD);
  if (fd < 0) {
    return absl::UnimplementedError(absl::StrCat("KVM_GET_STATS_FD(vcpu id=", id_,
                                                 "): ", strerror(errno),
                                                 "; counters need Linux 5.14 or later"));
  }
  const UniqueFd stats(fd);
  return ReadBinaryStat(stats.get(), name);
}

}  // namespace sipi
