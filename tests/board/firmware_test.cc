#include "vmm/load/firmware.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace sipi {
namespace {

std::vector<uint8_t> Bytes(std::span<const std::byte> page, size_t at, size_t count) {
  std::vector<uint8_t> bytes;
  for (const std::byte byte : page.subspan(at, count)) bytes.push_back(static_cast<uint8_t>(byte));
  return bytes;
}

TEST(Firmware, IsOnePage) { EXPECT_EQ(FirmwarePage().size(), kFirmwareBytes); }

TEST(Firmware, TheResetVectorIsAFarJumpToItsBeginning) {
  EXPECT_EQ(Bytes(FirmwarePage(), 0xff0, 5), (std::vector<uint8_t>{0xea, 0x00, 0xf0, 0x00, 0xf0}));
}

TEST(Firmware, BeginsWithInterruptsOffAndAsksForTheShutdownByte) {
  EXPECT_EQ(Bytes(FirmwarePage(), 0, 9),
            (std::vector<uint8_t>{0xfa, 0xb0, 0x0f, 0xe6, 0x70, 0xe4, 0x71, 0x3c, 0x0a}));
}

// Whoever gets between the two stops.
TEST(Firmware, IsFilledWithHlt) {
  EXPECT_EQ(Bytes(FirmwarePage(), 0x100, 3), (std::vector<uint8_t>{0xf4, 0xf4, 0xf4}));
  EXPECT_EQ(Bytes(FirmwarePage(), 0xffe, 2), (std::vector<uint8_t>{0xf4, 0xf4}));
}

TEST(Firmware, ItsCopyEndsTheFirstMib) {
  absl::StatusOr<GuestMemory> memory = GuestMemory::Create(1 << 20);
  ASSERT_TRUE(memory.ok()) << memory.status();
  ASSERT_TRUE(WriteFirmwareCopy(*memory).ok());
  EXPECT_EQ(*memory->At<uint8_t>(Gpa(0xffff0)).value(), 0xea);
  EXPECT_EQ(*memory->At<uint8_t>(Gpa(0xff000)).value(), 0xfa);
  EXPECT_EQ(*memory->At<uint8_t>(Gpa(0xfefff)).value(), 0);
}

TEST(Firmware, NeedsTheFirstMib) {
  absl::StatusOr<GuestMemory> memory = GuestMemory::Create(0xff000);
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_EQ(WriteFirmwareCopy(*memory).code(), absl::StatusCode::kOutOfRange);
}

}  // namespace
}  // namespace sipi
