// --calibration-us and a profile's calibration_us.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "vmm/cli/raw_flags.h"
#include "vmm/profile/profile.h"

namespace sipi {

// The window of one calibration in us: the flag's, else the profile's, else `normally`. Refused is
// one that the PM timer cannot measure, where the guest is to calibrate against it.
absl::StatusOr<uint32_t> CalibrationUs(const RawFlags& flags, const Profile& profile,
                                       bool clock_known, uint32_t normally);

}  // namespace sipi
