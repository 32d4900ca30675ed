// The bits of the error status register. Freestanding.
//
// Source: SDM vol 3A, 11.5.3 "Error Handling", figure 11-9. Bits 0 to 3 (checksum and accept
// errors) belong to the APIC bus of the P6 family: no processor since has them, and they never
// appear here.
#pragma once

#include <cstdint>

#include "apic/regs/types.h"

namespace sipi::apic {

inline constexpr uint32_t kEsrRedirectableIpi = 1u << 4;  // lowest-priority IPI, but not supported
inline constexpr uint32_t kEsrSendIllegalVector = 1u << 5;     // vector 0-15 in the ICR or self IPI
inline constexpr uint32_t kEsrReceiveIllegalVector = 1u << 6;  // received, or from an LVT entry
inline constexpr uint32_t kEsrIllegalRegister = 1u << 7;  // xAPIC access to a reserved register
inline constexpr uint32_t kEsrDefined = 0xf0;

// 11.5.2: "vectors 0 through 15 are reserved"; they can be neither sent nor received.
constexpr bool IsIllegalVector(Vector vector) { return vector.value < 16; }

}  // namespace sipi::apic
