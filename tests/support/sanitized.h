// Which sanitizers this build has: g++ says so by macros, clang by __has_feature.
#pragma once

#if defined(__has_feature)
#define SIPI_HAS_FEATURE(feature) __has_feature(feature)
#else
#define SIPI_HAS_FEATURE(feature) 0
#endif

namespace sipi {

// AddressSanitizer: simulated CPUs take 20 times as long, so tests that go through many schedules
// take fewer.
#if defined(__SANITIZE_ADDRESS__) || SIPI_HAS_FEATURE(address_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// Shadow memory takes terabytes of addresses: no limit of them leaves a process anything.
#if defined(__SANITIZE_THREAD__) || SIPI_HAS_FEATURE(thread_sanitizer)
inline constexpr bool kShadowed = true;
#else
inline constexpr bool kShadowed = kSanitized;
#endif

}  // namespace sipi

#undef SIPI_HAS_FEATURE
