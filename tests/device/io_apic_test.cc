#include "vmm/device/io_apic.h"

#include <gtest/gtest.h>

namespace sipi {
namespace {

constexpr uint64_t kSelect = 0x00;
constexpr uint64_t kWindow = 0x10;
constexpr uint64_t kEoi = 0x40;

constexpr uint64_t kLogical = 1u << 11;
constexpr uint64_t kActiveLow = 1u << 13;
constexpr uint64_t kRemoteIrr = 1u << 14;
constexpr uint64_t kLevel = 1u << 15;
constexpr uint64_t kMask = 1u << 16;
constexpr uint64_t Dest(uint64_t id) { return id << 56; }
constexpr uint64_t Mode(apic::DeliveryMode mode) { return static_cast<uint64_t>(mode) << 8; }

uint32_t Read(IoApic& chip, uint8_t index) {
  EXPECT_TRUE(chip.Write(kSelect, index).empty());
  return chip.Read(kWindow);
}

IoApicMessages Write(IoApic& chip, uint8_t index, uint32_t value) {
  EXPECT_TRUE(chip.Write(kSelect, index).empty());
  return chip.Write(kWindow, value);
}

// The half with the mask last, as drivers do.
IoApicMessages SetEntry(IoApic& chip, uint32_t input, uint64_t entry) {
  const uint8_t index = static_cast<uint8_t>(0x10 + 2 * input);
  EXPECT_TRUE(Write(chip, index + 1, static_cast<uint32_t>(entry >> 32)).empty());
  return Write(chip, index, static_cast<uint32_t>(entry));
}

TEST(IoApic, ResetStateIsTwentyFourMaskedEntriesVersion20) {
  IoApic chip(3);
  EXPECT_EQ(Read(chip, 0x00), 0x03000000u);
  EXPECT_EQ(Read(chip, 0x01), 0x00170020u);
  EXPECT_EQ(Read(chip, 0x02), 0x03000000u);
  for (uint32_t i = 0; i < 24; ++i) {
    EXPECT_EQ(Read(chip, static_cast<uint8_t>(0x10 + 2 * i)), 0x00010000u);
    EXPECT_EQ(Read(chip, static_cast<uint8_t>(0x11 + 2 * i)), 0x00000000u);
  }
  EXPECT_EQ(Read(chip, 0x40), 0u) << "reserved";
}

TEST(IoApic, OnlyTheFourIdBitsCanBeWrittenAndTheArbitrationIdFollows) {
  IoApic chip;
  Write(chip, 0x00, 0xffffffff);
  EXPECT_EQ(Read(chip, 0x00), 0x0f000000u);
  EXPECT_EQ(Read(chip, 0x02), 0x0f000000u);
  Write(chip, 0x02, 0);
  Write(chip, 0x01, 0xffffffff);
  EXPECT_EQ(Read(chip, 0x02), 0x0f000000u);
  EXPECT_EQ(Read(chip, 0x01), 0x00170020u);
}

TEST(IoApic, ReservedAndReadOnlyBitsOfAnEntryReadZero) {
  IoApic chip;
  SetEntry(chip, 5, ~uint64_t{0});
  EXPECT_EQ(chip.entry(5), 0xff00'0000'0001'afff);
  EXPECT_EQ(Read(chip, 0x1a), 0x0001'afffu);
  EXPECT_EQ(Read(chip, 0x1b), 0xff00'0000u);
}

TEST(IoApic, ARisingEdgeIsOneMessageWithWhatTheEntrySays) {
  IoApic chip;
  SetEntry(chip, 14, Dest(0x0d) | kLogical | Mode(apic::DeliveryMode::kLowestPriority) | 0x76);
  const auto message = chip.SetLine(14, true);
  ASSERT_TRUE(message.has_value());
  EXPECT_EQ(message->vector, Vector(0x76));
  EXPECT_EQ(message->mode, apic::DeliveryMode::kLowestPriority);
  EXPECT_TRUE(message->logical);
  EXPECT_FALSE(message->level_triggered);
  EXPECT_EQ(message->dest, 0x0du);
  EXPECT_EQ(message->shorthand, apic::Shorthand::kNone);
  EXPECT_FALSE(chip.SetLine(14, true).has_value());
  EXPECT_FALSE(chip.SetLine(14, false).has_value());
  EXPECT_TRUE(chip.SetLine(14, true).has_value());
  EXPECT_EQ(chip.entry(14) & kRemoteIrr, 0u);
}

TEST(IoApic, AnEdgeOnAMaskedInputIsLost) {
  IoApic chip;
  SetEntry(chip, 3, kMask | 0x81);
  EXPECT_FALSE(chip.SetLine(3, true).has_value());
  EXPECT_TRUE(SetEntry(chip, 3, 0x81).empty());
  EXPECT_FALSE(chip.SetLine(3, false).has_value());
  EXPECT_TRUE(chip.SetLine(3, true).has_value());
}

TEST(IoApic, ALevelIsSentOnceUntilItsEoi) {
  IoApic chip;
  SetEntry(chip, 9, kLevel | 0x99);
  const auto message = chip.SetLine(9, true);
  ASSERT_TRUE(message.has_value());
  EXPECT_TRUE(message->level_triggered);
  EXPECT_NE(chip.entry(9) & kRemoteIrr, 0u);
  EXPECT_FALSE(chip.SetLine(9, false).has_value());
  EXPECT_FALSE(chip.SetLine(9, true).has_value()) << "coalesced: the first is not ended";
  const IoApicMessages again = chip.EndOfInterrupt(Vector(0x99));
  ASSERT_EQ(again.size(), 1u) << "the line still asks";
  EXPECT_EQ(again.begin()->vector, Vector(0x99));
  EXPECT_NE(chip.entry(9) & kRemoteIrr, 0u);
  (void)chip.SetLine(9, false);
  EXPECT_TRUE(chip.EndOfInterrupt(Vector(0x99)).empty());
  EXPECT_EQ(chip.entry(9) & kRemoteIrr, 0u);
}

TEST(IoApic, TheEoiOfAnotherVectorOrOfAnEdgeEndsNothing) {
  IoApic chip;
  SetEntry(chip, 9, kLevel | 0x99);
  SetEntry(chip, 10, 0x98);
  (void)chip.SetLine(9, true);
  (void)chip.SetLine(10, true);
  EXPECT_TRUE(chip.EndOfInterrupt(Vector(0x98)).empty());
  EXPECT_NE(chip.entry(9) & kRemoteIrr, 0u);
}

TEST(IoApic, OneEoiEndsEveryEntryWithThatVector) {
  IoApic chip;
  for (const uint32_t input : {0u, 11u, 23u}) {
    SetEntry(chip, input, kLevel | 0x50);
    EXPECT_TRUE(chip.SetLine(input, true).has_value());
  }
  EXPECT_EQ(chip.EndOfInterrupt(Vector(0x50)).size(), 3u);
}

// 3.2.4, bit 14: set "when local APIC(s) accept the level interrupt".
TEST(IoApic, ALevelThatNobodyAcceptedIsTriedAgain) {
  IoApic chip;
  SetEntry(chip, 9, kLevel | 0x99);
  const auto refused = [&](const auto& messages) {
    if (messages.empty()) return false;
    chip.NotAccepted(messages.begin()->input);
    return (chip.entry(9) & kRemoteIrr) == 0;
  };
  const auto set_line = [&](bool high) {
    IoApicMessages messages;
    if (const auto message = chip.SetLine(9, high)) messages.Add(*message);
    return messages;
  };
  EXPECT_TRUE(refused(set_line(true)));
  EXPECT_TRUE(refused(set_line(true))) << "the line is driven again";
  EXPECT_TRUE(refused(Write(chip, 0x10 + 2 * 9, kLevel | 0x99))) << "its entry is written";
  EXPECT_TRUE(refused(Write(chip, 0x11 + 2 * 9, 0x01000000))) << "the destination, too";
  EXPECT_TRUE(refused(chip.EndOfInterrupt(Vector(0x99)))) << "somebody's EOI of that vector";
  EXPECT_TRUE(chip.EndOfInterrupt(Vector(0x98)).empty());
  EXPECT_TRUE(refused(chip.Retry()));
  EXPECT_EQ(chip.Retry().size(), 1u);
  EXPECT_NE(chip.entry(9) & kRemoteIrr, 0u) << "this one was accepted";
  EXPECT_TRUE(chip.Retry().empty());
}

TEST(IoApic, RetrySendsNothingThatIsMaskedLowOrEdgeTriggered) {
  IoApic chip;
  SetEntry(chip, 1, kMask | kLevel | 0x41);
  SetEntry(chip, 2, kLevel | 0x42);
  SetEntry(chip, 3, 0x43);
  EXPECT_FALSE(chip.SetLine(1, true).has_value());
  EXPECT_TRUE(chip.SetLine(3, true).has_value());
  chip.NotAccepted(3);  // an edge is lost
  EXPECT_TRUE(chip.Retry().empty());
}

TEST(IoApic, UnmaskingAnAssertedLevelSendsIt) {
  IoApic chip;
  SetEntry(chip, 4, kMask | kLevel | 0x82);
  EXPECT_FALSE(chip.SetLine(4, true).has_value());
  EXPECT_EQ(SetEntry(chip, 4, kLevel | 0x82).size(), 1u);
  EXPECT_TRUE(SetEntry(chip, 4, kMask | kLevel | 0x82).empty());
  EXPECT_TRUE(SetEntry(chip, 4, kLevel | 0x82).empty()) << "remote IRR is still set";
  SetEntry(chip, 4, kMask | kLevel | 0x82);
  EXPECT_TRUE(chip.EndOfInterrupt(Vector(0x82)).empty()) << "masked";
  EXPECT_EQ(SetEntry(chip, 4, kLevel | 0x82).size(), 1u);
}

TEST(IoApic, ChangingTheDestinationWhileInServiceDoesNotDisturbTheEoi) {
  IoApic chip;
  SetEntry(chip, 14, kLevel | 0x84);
  (void)chip.SetLine(14, true);
  (void)chip.SetLine(14, false);
  EXPECT_TRUE(Write(chip, 0x10 + 2 * 14 + 1, 0x01000000).empty());
  EXPECT_TRUE(chip.EndOfInterrupt(Vector(0x84)).empty());
  EXPECT_EQ(chip.entry(14), Dest(1) | kLevel | 0x84);
}

TEST(IoApic, SwitchingToEdgeClearsRemoteIrr) {
  IoApic chip;
  SetEntry(chip, 7, kLevel | 0x60);
  (void)chip.SetLine(7, true);
  SetEntry(chip, 7, kMask | 0x60);
  EXPECT_EQ(chip.entry(7) & kRemoteIrr, 0u);
  EXPECT_EQ(SetEntry(chip, 7, kLevel | 0x60).size(), 1u);
}

TEST(IoApic, ActiveLowInputsAskWhileLow) {
  IoApic chip;
  (void)chip.SetLine(16, true);
  SetEntry(chip, 16, kActiveLow | 0x70);
  EXPECT_TRUE(chip.SetLine(16, false).has_value());
  EXPECT_FALSE(chip.SetLine(16, true).has_value());
  EXPECT_TRUE(SetEntry(chip, 16, kActiveLow | kLevel | 0x70).empty());
  EXPECT_TRUE(chip.SetLine(16, false).has_value());
}

TEST(IoApic, TheEoiRegisterExistsSinceVersion20) {
  IoApic chip;
  SetEntry(chip, 9, kLevel | 0x99);
  (void)chip.SetLine(9, true);
  EXPECT_EQ(chip.Write(kEoi, 0x99).size(), 1u);
  IoApic old(0, 0x11);
  EXPECT_EQ(Read(old, 0x01), 0x00170011u);
  SetEntry(old, 9, kLevel | 0x99);
  (void)old.SetLine(9, true);
  EXPECT_TRUE(old.Write(kEoi, 0x99).empty());
  EXPECT_NE(old.entry(9) & kRemoteIrr, 0u);
}

TEST(IoApic, NmiIsAnEdgeWhateverTheTriggerModeSays) {
  IoApic chip;
  SetEntry(chip, 1, kLevel | Mode(apic::DeliveryMode::kNmi));
  const auto message = chip.SetLine(1, true);
  ASSERT_TRUE(message.has_value());
  EXPECT_EQ(message->mode, apic::DeliveryMode::kNmi);
  EXPECT_FALSE(message->level_triggered);
  EXPECT_EQ(chip.entry(1) & kRemoteIrr, 0u);
}

TEST(IoApic, ExtIntIsHandedOnAndReservedModesSendNothing) {
  IoApic chip;
  SetEntry(chip, 0, Mode(apic::DeliveryMode::kExtInt));
  const auto message = chip.SetLine(0, true);
  ASSERT_TRUE(message.has_value());
  EXPECT_EQ(message->mode, apic::DeliveryMode::kExtInt);
  SetEntry(chip, 1, Mode(apic::DeliveryMode::kReserved3) | 0x40);
  SetEntry(chip, 2, Mode(apic::DeliveryMode::kStartUp) | 0x40);
  EXPECT_FALSE(chip.SetLine(1, true).has_value());
  EXPECT_FALSE(chip.SetLine(2, true).has_value());
}

TEST(IoApic, WhatDoesNotExistDoesNothing) {
  IoApic chip;
  EXPECT_FALSE(chip.SetLine(24, true).has_value());
  EXPECT_TRUE(chip.Write(0x20, 0xffffffff).empty());
  EXPECT_EQ(chip.Read(0x20), 0u);
  EXPECT_TRUE(Write(chip, 0x40, 0).empty());
}

}  // namespace
}  // namespace sipi
