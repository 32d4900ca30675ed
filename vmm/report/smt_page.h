// The report of `sipi smt` as a page that needs nothing but itself: the table, and the switches as
// bars.
#pragma once

#include <string>

#include "vmm/timeline/run_record.h"

namespace sipi {

// UTF-8, one file, no scripts, nothing loaded from elsewhere.
std::string SmtPage(const RunRecord& record);

}  // namespace sipi
