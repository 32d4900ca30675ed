// What a strategy is called in tables, files and flags.
#pragma once

#include <string>

#include "guest/sequence/strategy.h"

namespace sipi {

// The canonical name: base, then "+reuse", then "+overlap". Any thread.
std::string StrategyName(const sequence::Strategy& strategy);

}  // namespace sipi
