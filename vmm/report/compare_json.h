// `sipi.compare/1`, documented in docs/formats.md.
#pragma once

#include <string>

#include "vmm/report/compare.h"

namespace sipi {

// The figures are those of the table; "samples" has those of each run. Ends in a newline. Bytes in
// strings that are no UTF-8 are replaced by U+FFFD.
std::string CompareJson(const Comparison& comparison);

}  // namespace sipi
