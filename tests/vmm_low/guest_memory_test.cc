#include "vmm/memory/guest_memory.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace sipi {
namespace {

constexpr uint64_t kMib = 1 << 20;
constexpr uint64_t kGib = 1ull << 30;

TEST(GuestMemory, SmallRamIsOneRangeFromZero) {
  const GuestMemory memory = *GuestMemory::Create(16 * kMib);
  ASSERT_EQ(memory.Ranges().size(), 1u);
  EXPECT_EQ(memory.Ranges()[0].gpa, Gpa(0));
  EXPECT_EQ(memory.Ranges()[0].bytes, 16 * kMib);
}

TEST(GuestMemory, RamAboveThreeGibLiesAtFourGib) {
  const GuestMemory memory = *GuestMemory::Create(5 * kGib);
  ASSERT_EQ(memory.Ranges().size(), 2u);
  EXPECT_EQ(memory.Ranges()[0].bytes, 3 * kGib);
  EXPECT_EQ(memory.Ranges()[1].gpa, Gpa(4 * kGib));
  EXPECT_EQ(memory.Ranges()[1].bytes, 2 * kGib);
  EXPECT_TRUE(memory.Contains(Gpa(3 * kGib - 1), 1));
  EXPECT_FALSE(memory.Contains(Gpa(3 * kGib), 1));
  EXPECT_FALSE(memory.Contains(Gpa(4 * kGib - 1), 1));
  EXPECT_TRUE(memory.Contains(Gpa(4 * kGib), 2 * kGib));
  EXPECT_FALSE(memory.Contains(Gpa(4 * kGib), 2 * kGib + 1));
}

TEST(GuestMemory, RangeAcrossTheHoleIsNotRam) {
  const GuestMemory memory = *GuestMemory::Create(5 * kGib);
  EXPECT_FALSE(memory.Contains(Gpa(3 * kGib - 8), 16));
}

TEST(GuestMemory, AddressesThatWouldWrapAreRefused) {
  const GuestMemory memory = *GuestMemory::Create(kMib);
  EXPECT_FALSE(memory.Contains(Gpa(~uint64_t{0}), 2));
  EXPECT_FALSE(memory.Contains(Gpa(4096), ~uint64_t{0}));
  EXPECT_FALSE(memory.Contains(Gpa(4 * kGib), 1));
  EXPECT_FALSE(memory.ArrayAt<uint64_t>(Gpa(0), ~uint64_t{0}).ok());
}

TEST(GuestMemory, SizeIsRoundedUpToAPage) {
  EXPECT_EQ(GuestMemory::Create(1)->size_bytes(), 4096u);
  EXPECT_FALSE(GuestMemory::Create(0).ok());
  EXPECT_FALSE(GuestMemory::Create(~uint64_t{0}).ok());
}

TEST(GuestMemory, HostAddressIsAlignedToALargePage) {
  for (int i = 0; i < 3; ++i) {
    const GuestMemory memory = *GuestMemory::Create(3 * kMib);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.Pointer(Gpa(0), 1)) % (2 * kMib), 0u);
    *memory.Pointer(Gpa(3 * kMib - 1), 1) = std::byte{1};  // the last byte is mapped
  }
}

TEST(GuestMemory, ReadsBackWhatWasWritten) {
  const GuestMemory memory = *GuestMemory::Create(kMib);
  const std::array<std::byte, 3> data = {std::byte{1}, std::byte{2}, std::byte{3}};
  ASSERT_TRUE(memory.Write(Gpa(kMib - 3), data).ok());
  std::array<std::byte, 3> back = {};
  ASSERT_TRUE(memory.Read(Gpa(kMib - 3), back).ok());
  EXPECT_EQ(back, data);
}

TEST(GuestMemory, AccessPastTheEndNamesAddressLengthAndSize) {
  const GuestMemory memory = *GuestMemory::Create(kMib);
  std::array<std::byte, 3> data = {};
  const absl::Status status = memory.Write(Gpa(kMib - 2), data);
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(status.message(),
            "guest address 0xffffe with 3 bytes is not in RAM (1048576 bytes of RAM)");
  EXPECT_EQ(memory.Read(Gpa(kMib), data).code(), absl::StatusCode::kOutOfRange);
}

TEST(GuestMemory, TypedAccessChecksAlignment) {
  const GuestMemory memory = *GuestMemory::Create(kMib);
  EXPECT_EQ(memory.At<uint32_t>(Gpa(2)).status().code(), absl::StatusCode::kInvalidArgument);
  const auto word = memory.At<uint32_t>(Gpa(8));
  ASSERT_TRUE(word.ok());
  **word = 0x01020304;
  EXPECT_EQ(*memory.Pointer(Gpa(8), 1), std::byte{4});  // little endian, as the guest
  EXPECT_EQ(memory.ArrayAt<uint16_t>(Gpa(8), 2)->back(), 0x0102);
  EXPECT_EQ(memory.AtomicAt<uint32_t>(Gpa(8))->load(std::memory_order_relaxed), 0x01020304u);
}

TEST(GuestMemory, MovedFromMemoryIsEmpty) {
  GuestMemory first = *GuestMemory::Create(kMib);
  const GuestMemory second = std::move(first);
  EXPECT_TRUE(second.Contains(Gpa(0), kMib));
  EXPECT_FALSE(first.Contains(Gpa(0), 1));  // NOLINT(bugprone-use-after-move): that is the test
}

}  // namespace
}  // namespace sipi
