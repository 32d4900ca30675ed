// From a parsed profile file to a Profile.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"
#include "vmm/profile/profile.h"

namespace sipi {

// `origin` names the file in errors. Errors: InvalidArgument naming the key, what is wrong with it,
// and the remedy. The keys and their limits are in docs/profiles.md.
absl::StatusOr<Profile> ReadProfile(const nlohmann::json& tree, const std::string& origin);

}  // namespace sipi
