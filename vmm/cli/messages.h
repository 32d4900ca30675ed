// What the command says: errors and notes on stderr, one line each.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "vmm/base/exit_codes.h"

namespace sipi {

// "sipi: TEXT" on stderr, on one line whatever `text` holds, and printable.
void Say(const std::string& text);
void Say(const absl::Status& status);

// A report on stderr, as it is: where standard output is the guest's.
void SayText(const std::string& text);

// ", 1200 per second", or nothing where there is no rate: of nothing, or in no time.
std::string PerSecond(uint64_t count, double seconds);

// Writes `text` to standard output. What fails (closed, full) is said; returns whether it worked.
bool Print(const std::string& text);

}  // namespace sipi
