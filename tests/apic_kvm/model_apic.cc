#include "tests/apic_kvm/model_apic.h"

#include <array>

#include "vmm/base/tsc.h"

namespace sipi {
namespace {

constexpr std::array<ApicId, 1> kIds = {ApicId(0)};
constexpr uint64_t kPageBytes = 0x1000;

bool IsX2Apic(uint32_t msr) { return msr >= apic::kX2ApicMsrFirst && msr <= apic::kX2ApicMsrLast; }

}  // namespace

ModelApic::ModelApic(const apic::ApicConfig& config)
    : apic_(ApicId(0), true, config), routing_(kIds), now_{.ns = 1'000'000'000, .tsc = ReadTsc()} {
  Publish();
}

Operation ModelApic::Apply(Operation operation) {
  switch (operation.code) {
    case OpCode::kWrmsr:
    case OpCode::kMmioWrite:
      Write(operation);
      break;
    case OpCode::kRdmsr:
    case OpCode::kMmioRead:
      Read(operation);
      break;
    case OpCode::kHalt:
      last_interrupt_ = apic_.HighestDeliverable()->value;
      apic_.Acknowledge(Vector(last_interrupt_));
      break;
    default:
      break;
  }
  return operation;
}

std::optional<uint32_t> ModelApic::OffsetInPage(uint32_t gpa) const {
  const uint64_t page = apic::ApicBaseAddress(apic_.ReadApicBase());
  if (apic_.mode() != apic::ApicMode::kXApic || gpa < page || gpa - page >= kPageBytes) return {};
  return static_cast<uint32_t>(gpa - page);
}

void ModelApic::Write(Operation& operation) {
  const uint32_t address = operation.address;
  apic::WriteEffect effect;
  if (operation.code == OpCode::kMmioWrite) {
    const std::optional<uint32_t> offset = OffsetInPage(address);
    if (offset) effect = apic_.WriteMmio(*offset, operation.low, now_);
  } else if (IsX2Apic(address)) {
    effect = apic_.WriteMsr(address, operation.value(), now_);
  } else if (address == apic::kMsrApicBase) {
    effect = apic_.WriteApicBase(operation.value());
  } else {
    effect = apic_.WriteTscDeadline(operation.value(), now_);
  }
  operation.fault = effect.fault ? 1 : 0;
  if (!effect.fault) Perform(effect);
}

void ModelApic::Read(Operation& operation) {
  const uint32_t address = operation.address;
  uint64_t value = 0;
  if (operation.code == OpCode::kMmioRead) {
    const std::optional<uint32_t> offset = OffsetInPage(address);
    operation.low = offset ? apic_.ReadMmio(*offset, now_) : ~0u;
    return;
  }
  if (IsX2Apic(address)) {
    const apic::ReadResult result = apic_.ReadMsr(address, now_);
    operation.fault = result.fault ? 1 : 0;
    value = result.value;
  } else {
    value = address == apic::kMsrApicBase ? apic_.ReadApicBase() : apic_.ReadTscDeadline(now_);
  }
  operation.low = static_cast<uint32_t>(value);
  operation.high = static_cast<uint32_t>(value >> 32);
}

void ModelApic::Perform(const apic::WriteEffect& effect) {
  Publish();
  if (effect.kind != apic::WriteEffect::Kind::kIpi) return;
  const bool fixed = effect.icr.mode == apic::DeliveryMode::kFixed ||
                     effect.icr.mode == apic::DeliveryMode::kLowestPriority;
  routing_.ForEachTarget(effect.icr, CpuNumber(0), [&](CpuNumber) {
    if (fixed) apic_.Accept(effect.icr.vector);
  });
}

void ModelApic::Follow(const apic::RegisterPage& page, uint64_t apic_base, uint64_t tsc_deadline) {
  static_cast<void>(apic_.AdoptApicBase(apic_base));
  apic_.FromPage(page, now_);
  static_cast<void>(apic_.WriteTscDeadline(tsc_deadline, now_));
  Publish();
}

}  // namespace sipi
