// The interrupt controllers and the timer are KVM's (irqchip `kernel`): lines are KVM's GSIs, and
// their registers never exit.
// Source: KVM API, KVM_IRQ_LINE, KVM_CREATE_IRQCHIP (GSIs 0 to 15 go to PIC and IOAPIC).
#pragma once

#include "vmm/board/interrupt_lines.h"
#include "vmm/kvm/vm.h"

namespace sipi {

class KvmLines final : public InterruptLines {
 public:
  explicit KvmLines(const Vm& vm) : vm_(vm) {}

  void SetLine(uint32_t line, bool high) override;
  bool ReadPort(uint16_t, uint32_t, uint32_t*) override { return false; }
  bool WritePort(uint16_t, uint32_t, uint32_t) override { return false; }
  bool ReadMmio(Gpa, std::span<std::byte>) override { return false; }
  bool WriteMmio(Gpa, std::span<const std::byte>) override { return false; }
  void EndOfInterrupt(Vector) override {}
  void TargetsChanged() override {}
  bool IntPin() const override { return false; }
  Vector Acknowledge() override { return Vector(0); }

 private:
  const Vm& vm_;
};

}  // namespace sipi
