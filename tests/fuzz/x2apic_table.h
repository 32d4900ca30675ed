// Table 11-6 of SDM vol 3A written down once more, on its own, for the fuzzer to compare the model
// with: which x2APIC MSRs can be read, which can be written, and which bits may be 1 then.
#pragma once

#include <cstdint>

#include "apic/model/local_apic.h"

namespace sipi::apic::fuzz {

struct X2ApicRule {
  bool readable = false;
  bool writable = false;
  uint64_t may_be_one = 0;
};

constexpr X2ApicRule X2ApicRuleOf(uint32_t msr, const ApicConfig& config) {
  const uint64_t lvt = 0x117ff;  // vector, delivery mode, status (read-only: no fault), mask
  if (msr >= 0x810 && msr <= 0x827) return {true, false, 0};  // ISR, TMR, IRR
  switch (msr) {
    case 0x802:  // ID
    case 0x803:  // version
    case 0x80a:  // PPR
    case 0x80d:  // LDR
    case 0x839:  // current count
      return {true, false, 0};
    case 0x808:  // TPR
      return {true, true, 0xff};
    case 0x80b:  // EOI
      return {false, true, 0};
    case 0x80f:  // SVR
      return {true, true, config.has_directed_eoi ? uint64_t{0x13ff} : uint64_t{0x3ff}};
    case 0x828:  // ESR
      return {true, true, 0};
    case 0x82f:  // LVT CMCI
      return config.has_cmci ? X2ApicRule{true, true, lvt} : X2ApicRule{};
    case 0x830:  // ICR: bits 31:20, 17:16 and 13 are reserved
      return {true, true, ~uint64_t{0xfff32000}};
    case 0x832:  // LVT timer
      return {true, true, config.has_tsc_deadline ? uint64_t{0x710ff} : uint64_t{0x310ff}};
    case 0x833:  // LVT thermal
    case 0x834:  // LVT performance
      return {true, true, lvt};
    case 0x835:  // LVT LINT0, LINT1
    case 0x836:
      return {true, true, 0x1f7ff};
    case 0x837:  // LVT error
      return {true, true, 0x110ff};
    case 0x838:  // initial count
      return {true, true, 0xffffffff};
    case 0x83e:  // divide configuration
      return {true, true, 0xb};
    case 0x83f:  // self IPI
      return {false, true, 0xff};
    default:
      return {};
  }
}

}  // namespace sipi::apic::fuzz
