// Random accesses to a local APIC, legal ones and others, for the differential test.
#pragma once

#include <cstdint>
#include <random>

#include "apic/model/local_apic.h"
#include "tests/apic_kvm/guest_program.h"

namespace sipi {

// Makes the next access from the state that the APIC is in. What would end the guest or make its
// result depend on the time is left out: INIT, NMI, SMI and reserved messages go to nobody, timers
// run for seconds, TSC deadlines lie years ahead.
class AccessGenerator {
 public:
  explicit AccessGenerator(uint32_t seed) : random_(seed) {}
  Operation Next(const apic::LocalApic& apic);

 private:
  uint32_t Draw() { return static_cast<uint32_t>(random_()); }
  uint32_t Below(uint32_t n) { return Draw() % n; }
  bool OneIn(uint32_t n) { return Below(n) == 0; }
  Operation ApicBase(const apic::LocalApic& apic);
  Operation TscDeadline();
  Operation XApic(const apic::LocalApic& apic);
  Operation X2Apic();
  uint32_t RegisterOffset();
  uint64_t ValueFor(uint32_t offset);
  uint32_t Rubbish();
  uint32_t IcrLow(bool harmless_dest);

  std::mt19937 random_;
};

}  // namespace sipi
