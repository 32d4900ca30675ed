// Strategies as flags name them: "kick+wait+reuse".
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "guest/sequence/strategy.h"

namespace sipi {

// The seven base names, in the order of sequence::StrategyId.
std::vector<std::string> StrategyBaseNames();

// NAME[+reuse][+overlap], the suffixes in any order, each at most once. "kick+wait" is a base name
// of its own, so "kick+wait+reuse" is `kick+wait` with reuse. `flag` is what errors name. Errors:
// InvalidArgument.
absl::StatusOr<sequence::Strategy> ParseStrategy(const std::string& flag, const std::string& text);

// A list such as "serial,kick+reuse", or "all": every base name with and without +reuse and
// +overlap. No repeats.
absl::StatusOr<std::vector<sequence::Strategy>> ParseStrategyList(const std::string& flag,
                                                                  const std::string& text);

}  // namespace sipi
