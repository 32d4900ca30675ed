#include "vmm/cli/calibration_flag.h"

#include "absl/strings/str_cat.h"
#include "vmm/base/status_macros.h"
#include "vmm/cli/flag_values.h"

namespace sipi {
namespace {

constexpr uint64_t kMaxUs = 10'000'000;
// The PM timer's 24 bits wrap after 4.687 s (ACPI 6.5, 4.8.3.3): the guest has to look at it
// before, and may be late.
constexpr uint64_t kMaxMeasuredUs = 4'000'000;

}  // namespace

absl::StatusOr<uint32_t> CalibrationUs(const RawFlags& flags, const Profile& profile,
                                       bool clock_known, uint32_t normally) {
  uint64_t us = normally;
  const char* flag = "--profile";
  if (profile.calibration_ns != 0) {
    us = static_cast<uint64_t>((profile.calibration_ns + 999) / 1000);
  }
  if (!flags.calibration_us.empty()) {
    flag = "--calibration-us";
    ASSIGN_OR_RETURN(us, ParseNumber(flag, flags.calibration_us, 10, kMaxUs));
  }
  if (us > kMaxMeasuredUs && !clock_known && flags.payload.empty()) {
    return FlagError(flag,
                     absl::StrCat("a calibration of ", us,
                                  " us is longer than the PM timer can measure; the limit is ",
                                  kMaxMeasuredUs, ", or give --clock=known"));
  }
  return static_cast<uint32_t>(us);
}

}  // namespace sipi
