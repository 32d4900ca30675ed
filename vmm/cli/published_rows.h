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
  // A figure of the profile was found with this row, alone or with another; else the row is a
  // prediction.
  bool fitted;
};

inline constexpr int64_t kPublishedMs = 1'000'000;

inline constexpr PublishedRow kPublishedRows[] = {
    {"haswell-28", "serial", 120 * kPublishedMs, true},
    {"haswell-28", "kick", 80 * kPublishedMs, true},
    {"skylake-96", "serial", 500 * kPublishedMs, true},
    {"skylake-96", "kick", 100 * kPublishedMs, true},
    {"skylake-96", "full", 34 * kPublishedMs, false},
    {"server-128", "serial", 700 * kPublishedMs, true},
    {"server-128", "kick", 100 * kPublishedMs, true},
    // Its gain over kick is called negligible.
    {"server-128", "kick+wait", 100 * kPublishedMs, false},
    {"server-128", "kick+reuse", 30 * kPublishedMs, true},
};

// SMT switched on machines with eight threads a core: "cpu/hotplug: expedite RCU when toggling
// SMT", 2026. The largest was given as 40 to 55 minutes (and "about one hour") and 5 to 6 minutes,
// without the direction: the middle stands here, beside the way off. Fitted, for normal grace
// periods off: HZ and whether a CPU is busy in the kernel, which the series does not tell, were
// chosen with these rows in view (docs/profiles.md).
struct PublishedSmtRow {
  const char* profile;
  bool off;        // down to one thread a core; else back to all
  bool expedited;  // SmtApproach::kExpedite; else kNone
  int64_t published_ns;
  bool fitted;
};

inline constexpr PublishedSmtRow kPublishedSmtRows[] = {
    {"ppc64-400", true, false, 74'000 * kPublishedMs, true},
    {"ppc64-400", true, true, 3'200 * kPublishedMs, true},
    {"ppc64-400", false, false, 147'000 * kPublishedMs, false},
    {"ppc64-400", false, true, 2'500 * kPublishedMs, true},
    {"ppc64-960", true, false, 236'174 * kPublishedMs, true},
    {"ppc64-960", true, true, 34'284 * kPublishedMs, true},
    {"ppc64-960", false, false, 227'322 * kPublishedMs, false},
    {"ppc64-960", false, true, 35'583 * kPublishedMs, true},
    {"ppc64-1920", true, false, 3'000'000 * kPublishedMs, false},
    {"ppc64-1920", true, true, 330'000 * kPublishedMs, false},
};

}  // namespace sipi
