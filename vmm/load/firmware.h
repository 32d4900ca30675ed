// The firmware of a machine that runs other people's guests: what lies at the reset vector.
//
// Three jumps long. A CPU that starts at F000:FFF0 (after INIT, or by a guest's jump to FFFF:0)
// goes on at the far address in 40H:67H if CMOS byte 0FH is 0AH, as on a PC (IBM PC AT Technical
// Reference, "Shutdown"); otherwise it asks the VMM, by a write to kFirmwarePort, to load the
// payload anew and enter it. There are no services (INT xxH), tables or splash.
//
// It lies twice: in a page of its own below 4 GiB, where the reset vector is, and at the end of the
// first MiB, which is RAM.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "apic/regs/types.h"
#include "vmm/memory/guest_memory.h"

namespace sipi {

inline constexpr uint16_t kFirmwarePort = 0x564;  // 8-bit out, any value
inline constexpr uint64_t kFirmwareBytes = 0x1000;
inline constexpr Gpa kFirmwareGpa{0xffff'f000};
inline constexpr Gpa kFirmwareCopyGpa{0xf'f000};

// The page.
std::span<const std::byte> FirmwarePage();

// Puts the copy into RAM. Error: OutOfRange if there is less than 1 MiB of it.
absl::Status WriteFirmwareCopy(const GuestMemory& memory);

}  // namespace sipi
