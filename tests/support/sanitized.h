// Whether this build has AddressSanitizer, under which simulated CPUs take 20 times as long: tests
// that go through many schedules take fewer there.
#pragma once

namespace sipi {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace sipi
