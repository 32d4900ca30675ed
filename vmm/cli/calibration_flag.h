// --calibration-us: the window of one calibration.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "vmm/profile/profile.h"

namespace sipi {

// The flag's value in us; where it is not given, the profile's, or `otherwise`. `clock_known`:
// nothing is calibrated, so any window will do. Errors: InvalidArgument with flag and remedy.
absl::StatusOr<uint32_t> ParseCalibration(const std::string& flag, const std::string& text,
                                          bool clock_known, const Profile& profile,
                                          uint32_t otherwise);

}  // namespace sipi
