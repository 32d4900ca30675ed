#include "tests/apic_kvm/difference_rules.h"

#include "absl/strings/str_format.h"
#include "apic/regs/registers.h"

namespace sipi {
namespace {

using Kind = Difference::Kind;
using apic::Reg;

}  // namespace

uint32_t Difference::Target() const {
  const uint32_t address = operation.address;
  if (operation.code == OpCode::kMmioRead || operation.code == OpCode::kMmioWrite) {
    return address & 0xfff;
  }
  const bool x2apic = address >= apic::kX2ApicMsrFirst && address <= apic::kX2ApicMsrLast;
  return x2apic ? (address - apic::kX2ApicMsrFirst) * 16 : ~0u;
}

std::string Difference::ToString() const {
  constexpr const char* kModes[] = {"disabled", "xAPIC", "x2APIC"};
  constexpr const char* kKinds[] = {"fault",     "value",        "register",
                                    "APIC base", "TSC deadline", "interrupt"};
  constexpr const char* kCodes[] = {"exit", "WRMSR", "RDMSR", "MMIO write", "MMIO read"};
  const uint32_t code = static_cast<uint32_t>(operation.code);
  return absl::StrFormat("%s %X of %X in %s mode: %s %X: model %X, KVM %X",
                         code < 5 ? kCodes[code] : "HLT", operation.address, operation.value(),
                         kModes[static_cast<size_t>(mode)], kKinds[static_cast<size_t>(kind)],
                         offset, model, kvm);
}

std::span<const Rule> DifferenceRules() {
  static constexpr Rule kRules[] = {
      {"placeholder", "", "", [](const Difference&) { return false; }},
  };
  return kRules;
}

const Rule* Explain(const Difference& difference) {
  for (const Rule& rule : DifferenceRules()) {
    if (rule.explains(difference)) return &rule;
  }
  return nullptr;
}

}  // namespace sipi
