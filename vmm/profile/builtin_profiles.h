// The profiles of vmm/profile/builtin/, embedded when the project is built.
#pragma once

#include <span>

namespace sipi {

struct BuiltinProfile {
  const char* name;  // of its file, without ".json"
  const char* json;  // its contents
};

// In the order of vmm/profile/meson.build.
std::span<const BuiltinProfile> BuiltinProfiles();

}  // namespace sipi
