#include "vmm/cli/calibration_flag.h"

#include "absl/strings/str_cat.h"
#include "vmm/base/status_macros.h"
#include "vmm/cli/flag_values.h"

namespace sipi {

absl::StatusOr<uint32_t> ParseCalibration(const std::string& flag, const std::string& text,
                                          bool clock_known, const Profile& profile,
                                          uint32_t otherwise) {
  constexpr uint64_t kMin = 10;
  constexpr uint64_t kMax = 10'000'000;
  if (text.empty()) {
    if (profile.calibration_ns == 0) return otherwise;
    return static_cast<uint32_t>((profile.calibration_ns + 999) / 1000);
  }
  ASSIGN_OR_RETURN(const uint64_t us, ParseNumber(flag, text, kMin, kMax));
  if (us <= kMaxCalibrationUs || clock_known) return static_cast<uint32_t>(us);
  return FlagError(flag,
                   absl::StrCat(Quoted(text), " is too large; the limit is ", kMaxCalibrationUs,
                                ", since the ACPI PM timer, which has 24 bits, begins anew "
                                "after 4.69 s; give less, or --clock=known, which needs no "
                                "window"));
}

}  // namespace sipi
