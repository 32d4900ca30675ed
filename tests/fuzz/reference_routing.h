// Who must get a message, asked of the APICs themselves and one CPU at a time: what the fuzzer
// compares the routing table with.
#pragma once

#include <cstdint>
#include <optional>

#include "apic/model/local_apic.h"
#include "apic/regs/icr.h"

namespace sipi::apic::fuzz {

// Would `target` accept the interrupt that this message carries? `lowest priority` counts as fixed:
// all its candidates. A null `sender` is a device. `written_id`: what software has made of the
// target's xAPIC ID, where it may.
bool Reaches(const Icr& icr, const LocalApic* sender, const LocalApic& target,
             std::optional<uint8_t> written_id = {});

}  // namespace sipi::apic::fuzz
