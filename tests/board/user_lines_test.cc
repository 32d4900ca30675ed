// The interrupt controllers together: which line gets where, and the timer's thread.
#include "vmm/board/user_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "tests/board/user_lines_fixture.h"

namespace sipi {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint64_t kActiveLow = 0x2000;
constexpr uint64_t kLevel = 0x8000;
constexpr uint64_t kExtInt = 0x700;
constexpr uint64_t kMasked = 0x10000;

// --- Lines.

TEST_F(UserLinesTest, ALineReachesBoth8259AndIoApic) {
  ProgramPics();
  SetEntry(5, 0x55);
  lines->SetLine(5, true);
  EXPECT_THAT(Vectors(), ElementsAre(0x55));
  EXPECT_TRUE(lines->IntPin());
  EXPECT_EQ(lines->Acknowledge(), Vector(0x25));
  EXPECT_FALSE(lines->IntPin());
}

TEST_F(UserLinesTest, Line0IsInput2OfTheIoApicAndIrq0) {
  ProgramPics();
  SetEntry(2, 0x62);
  lines->SetLine(0, true);
  EXPECT_THAT(Vectors(), ElementsAre(0x62));
  EXPECT_EQ(lines->Acknowledge(), Vector(0x20));
}

TEST_F(UserLinesTest, LinesAbove15AreTheIoApicsOnly) {
  ProgramPics();
  SetEntry(23, 0x77);
  lines->SetLine(23, true);
  EXPECT_THAT(Vectors(), ElementsAre(0x77));
  EXPECT_FALSE(lines->IntPin());
}

TEST_F(UserLinesTest, LinesThatDoNotExistDoNothing) {
  ProgramPics();
  lines->SetLine(24, true);
  lines->SetLine(0xffff'ffff, true);
  EXPECT_THAT(Vectors(), IsEmpty());
  EXPECT_FALSE(lines->IntPin());
}

TEST_F(UserLinesTest, TheSlavesLineHasTheSlavesVector) {
  ProgramPics();
  lines->SetLine(11, true);
  EXPECT_EQ(lines->Acknowledge(), Vector(0x2b));
}

TEST_F(UserLinesTest, FirmwareLeavesVectors08And70Unmasked) {
  lines->ProgramAsFirmware();
  lines->SetLine(0, true);
  lines->SetLine(11, true);
  EXPECT_EQ(lines->Acknowledge(), Vector(0x08));
  Out(0x20, 0x20);
  EXPECT_EQ(lines->Acknowledge(), Vector(0x73));
  EXPECT_EQ(In(0x21), 0u);
  EXPECT_EQ(In(0xa1), 0u);
}

// --- The INT pin.

TEST_F(UserLinesTest, TheIntPinsRiseIsToldOnce) {
  ProgramPics();
  EXPECT_EQ(int_pin_rises, 0);
  lines->SetLine(5, true);
  lines->SetLine(6, true);
  EXPECT_EQ(int_pin_rises, 1);
  lines->Acknowledge();
  EXPECT_FALSE(lines->IntPin()) << "IRQ 6 is below IRQ 5, which is in service";
  Out(0x20, 0x20);  // EOI
  EXPECT_TRUE(lines->IntPin());
  EXPECT_EQ(int_pin_rises, 2);
}

TEST_F(UserLinesTest, ARequestAboveTheAcknowledgedOneIsANewRise) {
  ProgramPics();
  SetEntry(0, kExtInt);
  lines->SetLine(6, true);
  EXPECT_EQ(lines->Acknowledge(), Vector(0x26));
  lines->SetLine(5, true);
  lines->SetLine(1, true);
  EXPECT_EQ(int_pin_rises, 2);
  EXPECT_EQ(lines->Acknowledge(), Vector(0x21));
  Out(0x20, 0x20);
  EXPECT_EQ(int_pin_rises, 3);
  EXPECT_EQ(messages.size(), 3u);
}

// INT drops in every acknowledge cycle, so input 0 sees an edge for each interrupt.
TEST_F(UserLinesTest, TwoRequestsAboveWhatIsInServiceAreTwoEdgesOfInput0) {
  ProgramPics();
  Out(0x21, 0xff);
  lines->SetLine(1, true);
  lines->SetLine(3, true);
  SetEntry(0, kExtInt);
  Out(0x20, 0x68);  // special mask mode: what is in service inhibits no other level
  Out(0x21, 0);
  EXPECT_EQ(lines->Acknowledge(), Vector(0x21));
  Out(0x21, 0x02);
  EXPECT_EQ(lines->Acknowledge(), Vector(0x23));
  EXPECT_EQ(messages.size(), 2u);
  for (const IoApicMessage& message : messages) {
    EXPECT_EQ(message.mode, apic::DeliveryMode::kExtInt);
  }
}

TEST_F(UserLinesTest, AMaskTakesTheIntPinDownAndUp) {
  ProgramPics();
  lines->SetLine(5, true);
  Out(0x21, 0x20);
  EXPECT_FALSE(lines->IntPin());
  EXPECT_EQ(lines->Acknowledge(), Vector(0x27)) << "the spurious interrupt";
  Out(0x21, 0x00);
  EXPECT_TRUE(lines->IntPin());
  EXPECT_EQ(int_pin_rises, 2);
}

// --- Level-triggered inputs.

TEST_F(UserLinesTest, ALevelThatStaysHighIsSentAgainAtEachEnd) {
  SetEntry(10, kLevel | 0x31);
  lines->SetLine(10, true);
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_TRUE(messages[0].level_triggered);
  lines->SetLine(10, true);
  EXPECT_EQ(messages.size(), 1u) << "not before its end";
  lines->EndOfInterrupt(Vector(0x32));
  EXPECT_EQ(messages.size(), 1u) << "another vector's end";
  lines->EndOfInterrupt(Vector(0x31));
  EXPECT_EQ(messages.size(), 2u);
  lines->SetLine(10, false);
  lines->EndOfInterrupt(Vector(0x31));
  EXPECT_EQ(messages.size(), 2u);
  EXPECT_EQ(ReadIoApic(0x10 + 20) & 0x4000, 0u) << "remote IRR";
}

TEST_F(UserLinesTest, UnmaskingALevelThatIsHighSendsIt) {
  SetEntry(10, kMasked | kLevel | 0x31);
  lines->SetLine(10, true);
  EXPECT_THAT(Vectors(), IsEmpty());
  SetEntry(10, kLevel | 0x31);
  EXPECT_THAT(Vectors(), ElementsAre(0x31));
}

// A device's level goes to a CPU whose APIC is disabled when it comes, and enabled later.
TEST_F(UserLinesTest, ALevelThatNoApicTookComesOnceOneMayTakeIt) {
  SetEntry(10, kLevel | 0x31);
  accepts = false;
  lines->SetLine(10, true);
  EXPECT_EQ(ReadIoApic(0x10 + 20) & 0x4000, 0u) << "remote IRR, with nobody to end it";
  lines->TargetsChanged();
  EXPECT_EQ(messages.size(), 2u) << "tried in vain";
  accepts = true;
  lines->TargetsChanged();
  EXPECT_EQ(messages.size(), 3u);
  EXPECT_EQ(ReadIoApic(0x10 + 20) & 0x4000, 0x4000u);
  lines->TargetsChanged();
  EXPECT_EQ(messages.size(), 3u) << "not before its end";
}

TEST_F(UserLinesTest, ALevelThatNoApicTookComesWhenItsLineRisesAgain) {
  SetEntry(10, kLevel | 0x31);
  accepts = false;
  lines->SetLine(10, true);
  accepts = true;
  lines->SetLine(10, false);
  lines->TargetsChanged();
  EXPECT_EQ(messages.size(), 1u) << "nobody asks any more";
  lines->SetLine(10, true);
  EXPECT_EQ(messages.size(), 2u);
}

// Input 0 is the 8259's INT. Active low, it asks while nothing is pending.
TEST_F(UserLinesTest, TheIntPinsFallIsAMessageWhereInput0IsActiveLow) {
  ProgramPics();
  lines->SetLine(5, true);
  SetEntry(0, kLevel | kActiveLow | 0x61);
  EXPECT_THAT(Vectors(), IsEmpty());
  Out(0x21, 0x20);
  EXPECT_THAT(Vectors(), ElementsAre(0x61));
}

TEST_F(UserLinesTest, TheIntPinsFallInTheAcknowledgeCycleIsAMessageToo) {
  ProgramPics();
  lines->SetLine(5, true);
  SetEntry(0, kLevel | kActiveLow | 0x61);
  EXPECT_EQ(lines->Acknowledge(), Vector(0x25));
  EXPECT_THAT(Vectors(), ElementsAre(0x61));
}

// --- Routes: who has to know which vectors' ends count learns it before the interrupt is sent, and
// only then.

TEST_F(UserLinesTest, RoutesAreToldBeforeTheMessageIsSent) {
  lines->SetLine(10, true);
  SetEntry(10, kLevel | 0x31);
  EXPECT_THAT(order, ElementsAre("routes", "send"));
}

TEST_F(UserLinesTest, RoutesAreNotToldWhenNothingChanges) {
  SetEntry(10, uint64_t{3} << 56 | kLevel | 0x31);
  EXPECT_THAT(order, ElementsAre("routes", "routes"));  // both halves
  order.clear();
  SetEntry(10, uint64_t{3} << 56 | kLevel | 0x31);
  SetEntry(10, uint64_t{3} << 56 | kLevel | kMasked | 0x31);
  ReadIoApic(1);
  WriteIoApic(0, 0);
  WriteIoApic(0x10, 0x0100'0000);  // its ID
  EXPECT_THAT(order, IsEmpty());
}

// --- Who claims what.

TEST_F(UserLinesTest, ClaimsPicAndTimerPortsOnly) {
  uint32_t value = 0;
  for (const int number : {0x20, 0x21, 0xa0, 0xa1, 0x4d0, 0x4d1, 0x40, 0x43, 0x61}) {
    const uint16_t port = static_cast<uint16_t>(number);
    EXPECT_TRUE(lines->ReadPort(port, 1, &value)) << port;
  }
  for (const int number : {0x1f, 0x22, 0x44, 0x60, 0x70, 0xcf9}) {
    const uint16_t port = static_cast<uint16_t>(number);
    EXPECT_FALSE(lines->ReadPort(port, 1, &value)) << port;
    EXPECT_FALSE(lines->WritePort(port, 1, 0)) << port;
  }
}

TEST_F(UserLinesTest, ClaimsTheIoApicsPageOnly) {
  std::array<std::byte, 4> data = {};
  EXPECT_TRUE(lines->ReadMmio(Gpa(kIoApicGpa + 0xffc), data));
  EXPECT_FALSE(lines->ReadMmio(Gpa(kIoApicGpa + 0xffd), data));
  EXPECT_FALSE(lines->ReadMmio(Gpa(kIoApicGpa + 0x1000), data));
  EXPECT_FALSE(lines->ReadMmio(Gpa(kIoApicGpa - 1), data));
  EXPECT_FALSE(lines->WriteMmio(Gpa(kIoApicGpa - 4), data));
}

TEST_F(UserLinesTest, WideReadsOfTheIoApicAreZeroExtendedAndNarrowOnesCut) {
  WriteIoApic(0, 1);  // the version register
  std::array<std::byte, 8> wide;
  wide.fill(std::byte{0xff});
  ASSERT_TRUE(lines->ReadMmio(Gpa(kIoApicGpa + 0x10), wide));
  uint64_t value;
  memcpy(&value, wide.data(), sizeof value);
  EXPECT_EQ(value, 0x0017'0020u);
  std::array<std::byte, 1> narrow;
  ASSERT_TRUE(lines->ReadMmio(Gpa(kIoApicGpa + 0x10), narrow));
  EXPECT_EQ(narrow[0], std::byte{0x20});
}

// --- The timer.

TEST_F(UserLinesTest, TheTimersThreadRaisesIrq0AgainAndAgain) {
  ASSERT_TRUE(lines->Start().ok());
  ProgramPics();
  StartTimer(2, 1193);
  for (int tick = 1; tick <= 3; ++tick) {
    ASSERT_TRUE(Eventually([&] { return int_pin_rises == tick; })) << tick;
    EXPECT_EQ(lines->Acknowledge(), Vector(0x20));
    Out(0x20, 0x20);
  }
}

TEST_F(UserLinesTest, TheTimersThreadSendsThroughInput2) {
  ASSERT_TRUE(lines->Start().ok());
  SetEntry(2, 0x30);
  StartTimer(3, 1193);  // a square wave rises once a period, too
  EXPECT_TRUE(Eventually([&] { return messages.size() >= 3; }));
  EXPECT_EQ(messages[2].vector, Vector(0x30));
}

TEST_F(UserLinesTest, AnAccessSeesTheInterruptWithoutTheThread) {
  ProgramPics();
  StartTimer(2, 2);  // 1.7 us
  while ((In(0x20) & 1) == 0) {
  }
  EXPECT_TRUE(lines->IntPin());
}

TEST_F(UserLinesTest, TheTimerIsIdleUntilItRunsAndSomebodyListens) {
  EXPECT_TRUE(lines->timer_idle());
  StartTimer(2, 0);
  EXPECT_FALSE(lines->timer_idle()) << "the 8259 masks nothing before it is initialised";
  Out(0x21, 0xff);
  EXPECT_TRUE(lines->timer_idle());
  SetEntry(2, 0x30);
  EXPECT_FALSE(lines->timer_idle());
  SetEntry(2, kMasked);
  EXPECT_TRUE(lines->timer_idle());
  ProgramPics();
  EXPECT_FALSE(lines->timer_idle());
  EXPECT_THAT(idles, ElementsAre(false, true, false, true, false));
}

TEST_F(UserLinesTest, AOneShotIsIdleOnceItHasInterrupted) {
  ASSERT_TRUE(lines->Start().ok());
  ProgramPics();
  StartTimer(0, 1193);
  ASSERT_TRUE(Eventually([&] { return idles.size() == 2; }));
  EXPECT_THAT(idles, ElementsAre(false, true));
  EXPECT_EQ(int_pin_rises, 1) << "the interrupt comes first";
  EXPECT_TRUE(lines->timer_idle());
}

TEST_F(UserLinesTest, StopEndsAThreadThatWaitsForAFarTickAndIsIdempotent) {
  ASSERT_TRUE(lines->Start().ok());
  ProgramPics();
  StartTimer(2, 0);
  lines->Stop();
  lines->Stop();
}

}  // namespace
}  // namespace sipi
