#include "vmm/cli/steal_flag.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "vmm/base/status_macros.h"
#include "vmm/cli/flag_values.h"

namespace sipi {

absl::StatusOr<StealConfig> ParseSteal(const std::string& flag, const std::string& text) {
  constexpr uint64_t kMaxMs = 60'000;
  const std::vector<std::string> parts = SplitAt(text, ':');
  if (parts.size() != 3) {
    return FlagError(flag,
                     absl::StrCat(Quoted(text), " is not PERIOD:MIN:MAX in ms, e.g. 50:1:20"));
  }
  ASSIGN_OR_RETURN(const uint64_t period, ParseNumber(flag, parts[0], 1, kMaxMs));
  ASSIGN_OR_RETURN(const uint64_t min, ParseNumber(flag, parts[1], 1, kMaxMs));
  ASSIGN_OR_RETURN(const uint64_t max, ParseNumber(flag, parts[2], min, kMaxMs));
  return StealConfig{.period_ms = static_cast<uint32_t>(period),
                     .min_ms = static_cast<uint32_t>(min),
                     .max_ms = static_cast<uint32_t>(max)};
}

}  // namespace sipi
