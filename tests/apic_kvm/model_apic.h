// The model's local APIC, driven by the operations of a guest's program: the other side of the
// differential test. Its one CPU has APIC ID 0.
#pragma once

#include <cstdint>
#include <optional>

#include "apic/model/local_apic.h"
#include "apic/model/router.h"
#include "tests/apic_kvm/guest_program.h"

namespace sipi {

class ModelApic {
 public:
  explicit ModelApic(const apic::ApicConfig& config);

  // As the guest would see it. kHalt takes the interrupt that is deliverable; there must be one.
  Operation Apply(Operation operation);
  uint8_t last_interrupt() const { return last_interrupt_; }

  apic::LocalApic& apic() { return apic_; }
  const apic::LocalApic& apic() const { return apic_; }
  // The model's clock stands still: its timers never expire, its counts do not go down.
  apic::Time now() const { return now_; }

  // Takes the state of the other side, where that is known to differ.
  void Follow(const apic::RegisterPage& page, uint64_t apic_base, uint64_t tsc_deadline);

 private:
  std::optional<uint32_t> OffsetInPage(uint32_t gpa) const;
  void Write(Operation& operation);
  void Read(Operation& operation);
  void Perform(const apic::WriteEffect& effect);
  void Publish() { routing_.Publish(CpuNumber(0), apic_.Routing()); }

  apic::LocalApic apic_;
  apic::RoutingTable routing_;
  apic::Time now_;
  uint8_t last_interrupt_ = 0;
};

}  // namespace sipi
