#include "vmm/load/firmware.h"

// firmware_page.S
extern "C" const unsigned char sipi_firmware_page[];
extern "C" const unsigned char sipi_firmware_page_end[];

namespace sipi {

std::span<const std::byte> FirmwarePage() {
  return std::as_bytes(std::span(sipi_firmware_page, sipi_firmware_page_end));
}

absl::Status WriteFirmwareCopy(const GuestMemory& memory) {
  return memory.Write(kFirmwareCopyGpa, FirmwarePage());
}

}  // namespace sipi
