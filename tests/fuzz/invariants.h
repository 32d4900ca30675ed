// What must hold for one local APIC after whatever software and devices did to it.
#pragma once

#include "apic/model/init_sipi.h"
#include "apic/model/local_apic.h"
#include "tests/fuzz/finding.h"

namespace sipi::apic::fuzz {

// Registers, as their page shows them: reserved bits, vectors below 16, masks of a
// software-disabled APIC, PPR, what is deliverable, and that the page restores to itself. `apic` is
// a copy to play with.
void CheckRegisters(LocalApic apic, const ApicConfig& config, Time now, Finding& finding);

// In xAPIC mode the ID register shows what software wrote to it, where that counts, or the low 8
// bits of the ID that the CPU was made with.
void CheckXApicId(LocalApic apic, std::optional<uint8_t> written_id, Time now, Finding& finding);

// The timer fires at its deadline and not before, which lies ahead once Advance() has been called,
// and the deadline that the caller knows of is not later than that; where there is none, the caller
// knows of none.
void CheckTimer(const LocalApic& apic, Time now, std::optional<uint64_t> known_deadline_ns,
                Finding& finding);

// The mailbox's word is one of the states in the table of apic/model/init_sipi.h.
void CheckStartupWord(StartupWord word, Finding& finding);

// A sender leaves alone what only the target may change, and tells truly whether it changed any.
void CheckPost(StartupWord before, StartupWord after, bool counted, Finding& finding);

// The target takes everything; a reset BSP runs, any other CPU that was reset waits.
void CheckTake(StartupWord before, StartupWord after, const StartupAction& action,
               Finding& finding);

}  // namespace sipi::apic::fuzz
