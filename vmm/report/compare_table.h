// The table of `sipi compare`.
#pragma once

#include <string>

#include "vmm/report/compare.h"

namespace sipi {

// One row per strategy: runs, median and spread of the smpboot time, the phases (medians of their
// wall-clock times), ratio to the baseline as "x.xx", CPUs online of offered ("partial" where they
// differ in any run). Times in milliseconds.
std::string CompareTable(const Comparison& comparison);

}  // namespace sipi
