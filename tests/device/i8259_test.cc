#include "vmm/device/i8259.h"

#include <gtest/gtest.h>

namespace sipi {
namespace {

constexpr uint8_t kNonSpecificEoi = 0x20;
constexpr uint8_t kReadIrr = 0x0a;
constexpr uint8_t kReadIsr = 0x0b;

// Vectors 20H-27H, 8086 mode; `icw4` for other modes.
I8259Chip SingleChip(uint8_t icw4 = 0x01) {
  I8259Chip chip;
  chip.WriteCommand(0x13);  // edge, single, ICW4
  chip.WriteData(0x20);
  chip.WriteData(icw4);
  return chip;
}

// The pair as Linux programs it: vectors 30H and 38H.
I8259 Pair(uint8_t master_icw4 = 0x01) {
  I8259 pair;
  pair.Write(0x20, 1, 0x11);
  pair.Write(0x21, 1, 0x30);
  pair.Write(0x21, 1, 0x04);
  pair.Write(0x21, 1, master_icw4);
  pair.Write(0xa0, 1, 0x11);
  pair.Write(0xa1, 1, 0x38);
  pair.Write(0xa1, 1, 0x02);
  pair.Write(0xa1, 1, 0x01);
  return pair;
}

void Pulse(I8259Chip& chip, uint32_t level) {
  chip.SetLine(level, false);
  chip.SetLine(level, true);
}

TEST(I8259Chip, SaysNothingBeforeItIsInitialized) {
  I8259Chip chip;
  chip.SetLine(0, true);
  EXPECT_FALSE(chip.IntPin());
  chip.WriteCommand(0x13);
  chip.WriteData(0x20);
  Pulse(chip, 0);
  EXPECT_FALSE(chip.IntPin()) << "ICW4 is still to come";
  chip.WriteData(0x01);
  EXPECT_TRUE(chip.IntPin());
}

TEST(I8259Chip, InitializationClearsMaskAndEdgesAndPriorities) {
  I8259Chip chip = SingleChip();
  chip.WriteData(0xfe);
  chip.WriteCommand(0xc3);  // set priority: IR3 lowest
  chip.SetLine(5, true);
  chip.WriteCommand(0x13);
  chip.WriteData(0x48);
  chip.WriteData(0x01);
  EXPECT_EQ(chip.ReadData(), 0x00);
  EXPECT_FALSE(chip.IntPin()) << "the line must fall and rise again";
  Pulse(chip, 5);
  Pulse(chip, 1);
  EXPECT_EQ(chip.Acknowledge(), 1) << "IR0 has the highest priority again";
  EXPECT_EQ(chip.vector(1), 0x49);
}

TEST(I8259Chip, WithoutIcw4NeedsTwoBytesOrThree) {
  I8259Chip single;
  single.WriteCommand(0x12);
  single.WriteData(0x20);
  single.WriteData(0xfb);  // OCW1 already
  EXPECT_EQ(single.ReadData(), 0xfb);
  I8259Chip cascaded;
  cascaded.WriteCommand(0x10);
  cascaded.WriteData(0x20);
  cascaded.WriteData(0x04);  // ICW3
  cascaded.WriteData(0xfb);
  EXPECT_EQ(cascaded.ReadData(), 0xfb);
}

TEST(I8259Chip, ServesTheHighestPriorityFirst) {
  I8259Chip chip = SingleChip();
  for (const uint32_t level : {6u, 2u, 4u}) Pulse(chip, level);
  EXPECT_EQ(chip.Acknowledge(), 2);
  EXPECT_FALSE(chip.IntPin()) << "lower ones wait";
  chip.WriteCommand(kNonSpecificEoi);
  EXPECT_EQ(chip.Acknowledge(), 4);
  chip.WriteCommand(kNonSpecificEoi);
  EXPECT_EQ(chip.Acknowledge(), 6);
}

TEST(I8259Chip, AHigherPriorityInterruptsALowerOne) {
  I8259Chip chip = SingleChip();
  Pulse(chip, 3);
  chip.Acknowledge();
  Pulse(chip, 3);
  EXPECT_FALSE(chip.IntPin()) << "its own level waits";
  Pulse(chip, 1);
  EXPECT_EQ(chip.Acknowledge(), 1);
  EXPECT_EQ(chip.in_service(), 0b1010);
  chip.WriteCommand(kNonSpecificEoi);
  EXPECT_EQ(chip.in_service(), 0b1000) << "the higher one ends";
}

TEST(I8259Chip, AMaskedRequestWaitsInIrr) {
  I8259Chip chip = SingleChip();
  chip.WriteData(0x10);
  Pulse(chip, 4);
  EXPECT_FALSE(chip.IntPin());
  EXPECT_EQ(chip.ReadCommand(), 0x10);
  chip.WriteData(0x00);
  EXPECT_TRUE(chip.IntPin());
}

TEST(I8259Chip, AnEdgeCountsOnceAndIsKeptUntilAcknowledged) {
  I8259Chip chip = SingleChip();
  Pulse(chip, 3);
  chip.SetLine(3, false);
  EXPECT_TRUE(chip.IntPin());
  chip.SetLine(3, true);
  EXPECT_EQ(chip.Acknowledge(), 3);
  chip.WriteCommand(kNonSpecificEoi);
  EXPECT_FALSE(chip.IntPin()) << "the line stays high, that is no new edge";
}

TEST(I8259Chip, ALevelCountsAsLongAsItLasts) {
  I8259Chip chip = SingleChip();
  chip.SetLevelTriggered(0x08);
  chip.SetLine(3, true);
  EXPECT_EQ(chip.Acknowledge(), 3);
  EXPECT_FALSE(chip.IntPin());
  chip.WriteCommand(kNonSpecificEoi);
  EXPECT_TRUE(chip.IntPin());
  chip.SetLine(3, false);
  EXPECT_FALSE(chip.IntPin());
}

TEST(I8259Chip, LtimMakesEveryInputLevelTriggered) {
  I8259Chip chip;
  chip.WriteCommand(0x1b);
  chip.WriteData(0x20);
  chip.WriteData(0x01);
  chip.SetLine(6, true);
  chip.SetLine(6, false);
  EXPECT_FALSE(chip.IntPin());
}

TEST(I8259Chip, AWithdrawnRequestIsAnsweredWithLevel7AndNoServiceBit) {
  I8259Chip chip = SingleChip();
  chip.SetLevelTriggered(0x08);
  chip.SetLine(3, true);
  chip.SetLine(3, false);
  EXPECT_EQ(chip.Acknowledge(), std::nullopt);
  EXPECT_EQ(chip.vector(7), 0x27);
  EXPECT_EQ(chip.in_service(), 0);
}

TEST(I8259Chip, SpecificEoiEndsThatLevelOnly) {
  I8259Chip chip = SingleChip();
  Pulse(chip, 6);
  chip.Acknowledge();
  Pulse(chip, 2);
  chip.Acknowledge();
  chip.WriteCommand(0x66);
  EXPECT_EQ(chip.in_service(), 0x04);
  chip.WriteCommand(0x40);  // no operation
  EXPECT_EQ(chip.in_service(), 0x04);
}

// The data sheet's example: IR6 and IR4 in service; after the rotation IR4 is the lowest, IR5 the
// highest.
TEST(I8259Chip, RotateOnNonSpecificEoiMakesTheLevelServedTheLowest) {
  I8259Chip chip = SingleChip();
  Pulse(chip, 6);
  chip.Acknowledge();
  Pulse(chip, 4);
  chip.Acknowledge();
  ASSERT_EQ(chip.in_service(), 0b0101'0000);
  chip.WriteCommand(0xa0);
  EXPECT_EQ(chip.in_service(), 0b0100'0000);
  for (const uint32_t level : {4u, 7u, 5u}) Pulse(chip, level);
  EXPECT_EQ(chip.Acknowledge(), 5);
  EXPECT_FALSE(chip.IntPin()) << "7 and 4 are below 6 now";
  chip.WriteCommand(kNonSpecificEoi);  // 5
  chip.WriteCommand(kNonSpecificEoi);  // 6
  EXPECT_EQ(chip.Acknowledge(), 7);
  chip.WriteCommand(kNonSpecificEoi);
  EXPECT_EQ(chip.Acknowledge(), 4);
}

TEST(I8259Chip, SetPriorityAndRotateOnSpecificEoiNameTheLowestLevel) {
  I8259Chip chip = SingleChip();
  chip.WriteCommand(0xc5);  // IR5 lowest: 6 highest
  Pulse(chip, 0);
  Pulse(chip, 6);
  EXPECT_EQ(chip.Acknowledge(), 6);
  chip.WriteCommand(0xe6);  // ends 6, makes it the lowest: 7 highest
  EXPECT_EQ(chip.in_service(), 0);
  Pulse(chip, 7);
  EXPECT_EQ(chip.Acknowledge(), 7);
}

TEST(I8259Chip, AutomaticEoiLeavesNothingInService) {
  I8259Chip chip = SingleChip(0x03);
  Pulse(chip, 3);
  Pulse(chip, 5);
  EXPECT_EQ(chip.Acknowledge(), 3);
  EXPECT_EQ(chip.in_service(), 0);
  EXPECT_EQ(chip.Acknowledge(), 5);
}

TEST(I8259Chip, RotateInAutomaticEoiMode) {
  I8259Chip chip = SingleChip(0x03);
  chip.WriteCommand(0x80);  // set
  for (const uint32_t level : {3u, 5u}) Pulse(chip, level);
  EXPECT_EQ(chip.Acknowledge(), 3);
  for (const uint32_t level : {2u, 3u}) Pulse(chip, level);
  EXPECT_EQ(chip.Acknowledge(), 5) << "3 is the lowest now, 4 the highest";
  EXPECT_EQ(chip.Acknowledge(), 2);
  chip.WriteCommand(0x00);  // clear
  EXPECT_EQ(chip.Acknowledge(), 3);
  for (const uint32_t level : {2u, 4u}) Pulse(chip, level);
  EXPECT_EQ(chip.Acknowledge(), 4) << "the order stays: 2 is the lowest, not 3";
}

TEST(I8259Chip, SpecialMaskModeLetsLowerLevelsThrough) {
  I8259Chip chip = SingleChip();
  Pulse(chip, 2);
  chip.Acknowledge();
  Pulse(chip, 5);
  EXPECT_FALSE(chip.IntPin());
  chip.WriteData(0x04);
  EXPECT_FALSE(chip.IntPin()) << "masking what is in service does not help by itself";
  chip.WriteCommand(0x68);  // set special mask
  EXPECT_EQ(chip.Acknowledge(), 5);
  chip.WriteCommand(kNonSpecificEoi);
  EXPECT_EQ(chip.in_service(), 0x04) << "a masked level is not ended by a non-specific EOI";
  chip.WriteCommand(kNonSpecificEoi);
  EXPECT_EQ(chip.in_service(), 0x04);
  chip.WriteCommand(0x48);  // reset special mask
  chip.WriteCommand(kNonSpecificEoi);
  EXPECT_EQ(chip.in_service(), 0x00);
}

TEST(I8259Chip, Ocw3WithoutEnableBitLeavesTheSpecialMaskAlone) {
  I8259Chip chip = SingleChip();
  Pulse(chip, 2);
  chip.Acknowledge();
  chip.WriteData(0x04);
  chip.WriteCommand(0x28);
  Pulse(chip, 5);
  EXPECT_FALSE(chip.IntPin());
}

TEST(I8259Chip, PollAcknowledgesWithTheNextRead) {
  I8259Chip chip = SingleChip();
  Pulse(chip, 5);
  chip.WriteCommand(0x0c);
  EXPECT_EQ(chip.ReadCommand(), 0x85);
  EXPECT_EQ(chip.in_service(), 0x20);
  EXPECT_EQ(chip.ReadCommand(), 0x00) << "IRR again: one poll, one acknowledge";
  chip.WriteCommand(0x0c);
  EXPECT_EQ(chip.ReadCommand(), 0x00) << "no request";
  EXPECT_EQ(chip.in_service(), 0x20);
}

TEST(I8259Chip, ReadsIrrUntilToldOtherwise) {
  I8259Chip chip = SingleChip();
  Pulse(chip, 1);
  chip.Acknowledge();
  Pulse(chip, 4);
  EXPECT_EQ(chip.ReadCommand(), 0x10);
  chip.WriteCommand(kReadIsr);
  EXPECT_EQ(chip.ReadCommand(), 0x02);
  chip.WriteCommand(0x08);  // no register named: as before
  EXPECT_EQ(chip.ReadCommand(), 0x02);
  chip.WriteCommand(kReadIrr);
  EXPECT_EQ(chip.ReadCommand(), 0x10);
}

TEST(I8259, TheSlaveRanksBetweenIrq1AndIrq3) {
  I8259 pair = Pair();
  for (const uint32_t irq : {3u, 9u, 1u, 8u}) pair.SetLine(irq, true);
  EXPECT_EQ(pair.Acknowledge(), Vector(0x31));
  pair.Write(0x20, 1, kNonSpecificEoi);
  EXPECT_EQ(pair.Acknowledge(), Vector(0x38));
  EXPECT_FALSE(pair.IntPin()) << "IRQ 9 waits behind 8, IRQ 3 behind the cascade";
  pair.Write(0xa0, 1, kNonSpecificEoi);
  pair.Write(0x20, 1, kNonSpecificEoi);
  EXPECT_EQ(pair.Acknowledge(), Vector(0x39));
  pair.Write(0xa0, 1, kNonSpecificEoi);
  pair.Write(0x20, 1, kNonSpecificEoi);
  EXPECT_EQ(pair.Acknowledge(), Vector(0x33));
}

TEST(I8259, ASlaveInServiceLocksOutItsOwnHigherRequests) {
  I8259 pair = Pair();
  pair.SetLine(12, true);
  EXPECT_EQ(pair.Acknowledge(), Vector(0x3c));
  pair.SetLine(8, true);
  EXPECT_FALSE(pair.IntPin());
}

TEST(I8259, InSpecialFullyNestedModeItDoesNot) {
  I8259 pair = Pair(0x11);
  pair.SetLine(12, true);
  EXPECT_EQ(pair.Acknowledge(), Vector(0x3c));
  pair.SetLine(8, true);
  EXPECT_EQ(pair.Acknowledge(), Vector(0x38));
  pair.SetLine(9, true);
  EXPECT_FALSE(pair.IntPin()) << "lower than what the slave serves";
  pair.Write(0xa0, 1, kNonSpecificEoi);
  EXPECT_EQ(pair.Acknowledge(), Vector(0x39));
}

TEST(I8259, ARequestThatTheSlaveWithdrawsIsIrq15AndTheMasterServesTheCascade) {
  I8259 pair = Pair();
  pair.Write(0x4d1, 1, 0x08);  // IRQ 11 level-triggered
  pair.SetLine(11, true);
  pair.SetLine(11, false);
  EXPECT_TRUE(pair.IntPin());
  EXPECT_EQ(pair.Acknowledge(), Vector(0x3f));
  EXPECT_EQ(pair.slave().in_service(), 0x00);
  EXPECT_EQ(pair.master().in_service(), 0x04);
}

TEST(I8259, NoRequestAtAllIsIrq7) {
  I8259 pair = Pair();
  EXPECT_EQ(pair.Acknowledge(), Vector(0x37));
  EXPECT_EQ(pair.master().in_service(), 0x00);
}

TEST(I8259, PollingTheSlaveLeavesTheMasterAlone) {
  I8259 pair = Pair();
  pair.SetLine(10, true);
  pair.Write(0x20, 1, 0x0c);
  EXPECT_EQ(pair.Read(0x20, 1), 0x82u);
  pair.Write(0xa0, 1, 0x0c);
  EXPECT_EQ(pair.Read(0xa0, 1), 0x82u);
  EXPECT_EQ(pair.slave().in_service(), 0x04);
  EXPECT_EQ(pair.master().in_service(), 0x04);
}

TEST(I8259, ASlaveWithAutomaticEoiRequestsAgainAtOnce) {
  I8259 pair = Pair();
  pair.Write(0xa0, 1, 0x11);
  pair.Write(0xa1, 1, 0x38);
  pair.Write(0xa1, 1, 0x02);
  pair.Write(0xa1, 1, 0x03);
  pair.SetLine(8, true);
  pair.SetLine(14, true);
  EXPECT_EQ(pair.Acknowledge(), Vector(0x38));
  pair.Write(0x20, 1, kNonSpecificEoi);
  EXPECT_EQ(pair.Acknowledge(), Vector(0x3e));
}

TEST(I8259, ElcrKeepsTheTimerKeyboardClockAndCoprocessorOnEdges) {
  I8259 pair = Pair();
  pair.Write(0x4d0, 1, 0xff);
  pair.Write(0x4d1, 1, 0xff);
  EXPECT_EQ(pair.Read(0x4d0, 1), 0xf8u);
  EXPECT_EQ(pair.Read(0x4d1, 1), 0xdeu);
  EXPECT_EQ(pair.Read(0x4d0, 2), 0xdef8u);
}

TEST(I8259, FirmwarePutsIrq11AtVector73) {
  I8259 pair;
  pair.ProgramAsFirmware();
  pair.SetLine(11, true);
  pair.SetLine(11, false);
  EXPECT_EQ(pair.Acknowledge(), Vector(0x73));
}

TEST(I8259, LinesThatDoNotExistDoNothing) {
  I8259 pair = Pair();
  pair.SetLine(2, true);
  pair.SetLine(16, true);
  EXPECT_FALSE(pair.IntPin());
}

}  // namespace
}  // namespace sipi
