#include "vmm/vcpu/guest_linear.h"

namespace sipi {
namespace {

constexpr uint64_t kCr0Paging = 1u << 31;
constexpr uint64_t kCr4La57 = 1u << 12;
constexpr uint64_t kEferLma = 1u << 10;
constexpr uint64_t kPresent = 1u << 0;
constexpr uint64_t kLargePage = 1u << 7;
constexpr uint64_t kAddressMask = 0x000f'ffff'ffff'f000;

}  // namespace

std::optional<Gpa> LinearToPhysical(uint64_t linear, const kvm_sregs& sregs,
                                    const GuestMemory& memory) {
  if ((sregs.cr0 & kCr0Paging) == 0) return Gpa(linear & 0xffff'ffff);
  if ((sregs.efer & kEferLma) == 0 || (sregs.cr4 & kCr4La57) != 0) return std::nullopt;
  uint64_t table = sregs.cr3 & kAddressMask;
  for (unsigned shift = 39;; shift -= 9) {
    const absl::StatusOr<uint64_t*> entry =
        memory.At<uint64_t>(Gpa(table + (linear >> shift & 0x1ff) * 8));
    if (!entry.ok() || (**entry & kPresent) == 0) return std::nullopt;
    const bool leaf = shift == 12 || (shift <= 30 && (**entry & kLargePage) != 0);
    if (leaf) {
      const uint64_t offset_mask = (uint64_t{1} << shift) - 1;
      return Gpa((**entry & kAddressMask & ~offset_mask) | (linear & offset_mask));
    }
    table = **entry & kAddressMask;
  }
}

std::vector<uint8_t> CodeBytes(const kvm_regs& regs, const kvm_sregs& sregs,
                               const GuestMemory& memory, size_t bytes) {
  const bool long_mode = (sregs.efer & kEferLma) != 0 && sregs.cs.l != 0;
  const uint64_t linear = (long_mode ? 0 : sregs.cs.base) + regs.rip;
  std::vector<uint8_t> code;
  for (size_t i = 0; i < bytes; ++i) {
    const std::optional<Gpa> at = LinearToPhysical(linear + i, sregs, memory);
    const std::byte* byte = at ? memory.Pointer(*at, 1) : nullptr;
    if (byte == nullptr) break;
    code.push_back(std::to_integer<uint8_t>(*byte));
  }
  return code;
}

}  // namespace sipi
