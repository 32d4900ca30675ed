// Bring-up times that others have published, and whether a profile of ours was fitted to them.
//
// Sources: "x86/smpboot: Send INIT/SIPI/SIPI to secondary CPUs in parallel" (2021 to 2022) and
// "[PATCH 0/9] Parallel CPU bringup for x86_64" (February 2023), linux-kernel. docs/profiles.md
// says how each profile's figures were found.
#pragma once

#include <cstdint>
#include <span>

namespace sipi {

struct PublishedRow {
  const char* profile;
  const char* strategy;
  int64_t published_ns;
  bool fitted;  // the profile was fitted to this row; else the row is a prediction
};

inline constexpr int64_t kPublishedMs = 1'000'000;

inline constexpr PublishedRow kPublishedRows[] = {
    {"haswell-28", "serial", 120 * kPublishedMs, true},
    {"haswell-28", "kick", 80 * kPublishedMs, true},
    {"skylake-96", "serial", 500 * kPublishedMs, true},
    {"skylake-96", "kick", 100 * kPublishedMs, false},
    {"skylake-96", "full", 34 * kPublishedMs, false},
    {"server-128", "serial", 700 * kPublishedMs, true},
    {"server-128", "kick", 100 * kPublishedMs, true},
    {"server-128", "kick+reuse", 30 * kPublishedMs, true},
};

}  // namespace sipi
