// Interrupts of devices and a CPU's APIC: a level that no APIC took, and the 8259's INT at LINT0.
// Source: 82093AA data sheet, 3.2.4 (remote IRR); SDM vol 3A, 11.5.1 (LINT0).
#include <gtest/gtest.h>

#include <utility>

#include "apic/regs/lvt.h"
#include "tests/apic_kvm/program_fixture.h"

namespace sipi {
namespace {

constexpr uint64_t kIoApicSelect = 0xfec0'0000;
constexpr uint64_t kIoApicWindow = 0xfec0'0010;
constexpr uint16_t kTestLine = 0x2000;  // of the test device: port 2000H + line drives a line
constexpr uint16_t kLine = 20;          // no 8259 has it
constexpr uint8_t kVector = 0x51;
constexpr uint32_t kLevel = 0x8000;

MachineOptions WithBoard(MachineOptions options) {
  options.board = BoardOptions{.ram_bytes = 8 << 20};
  return options;
}

// The line interrupts CPU 0, level-triggered.
void RouteLevel(Program& program) {
  constexpr uint32_t kEntry = 0x10 + 2 * kLine;
  for (const auto& [index, value] :
       {std::pair(kEntry + 1, 0u), std::pair(kEntry, kLevel | kVector)}) {
    program.Write32(kIoApicSelect, index);
    program.Write32(kIoApicWindow, value);
  }
}

class BoardInterrupts : public EachMode {
 protected:
  void SetUp() override {
    EachMode::SetUp();
    if (!IsSkipped()) MakeProgrammed(WithBoard(Cpus(1)));
  }
};

INSTANTIATE_TEST_SUITE_P(Modes, BoardInterrupts, testing::ValuesIn(kEachMode), ChipAndModeName);

TEST_P(BoardInterrupts, ALevelThatADisabledApicMissedComesWhenItsLineIsDrivenAgain) {
  Program& boot = Of(0);
  RouteLevel(boot);
  boot.Out(kTestLine + kLine, 1);
  Enable(boot);
  boot.Out(kTestLine + kLine, 0);
  boot.Out(kTestLine + kLine, 1);
  boot.Halt();
  boot.Exit();
  EXPECT_TRUE(RunPrograms()) << end_.text << Doings();
  EXPECT_EQ(Interrupts(0, kVector), 1u);
}

// As the 82093AA, which offers its message until somebody accepts it. KVM's own tries again only
// when something happens to the line.
class OurBoard : public BoardInterrupts {};

INSTANTIATE_TEST_SUITE_P(User, OurBoard,
                         testing::Values(ChipAndMode{IrqchipKind::kUser, true},
                                         ChipAndMode{IrqchipKind::kUser, false}),
                         ChipAndModeName);

TEST_P(OurBoard, ALevelThatADisabledApicMissedComesOnceThatIsEnabled) {
  Program& boot = Of(0);
  RouteLevel(boot);
  boot.Out(kTestLine + kLine, 1);
  Enable(boot);
  boot.Halt();
  boot.Exit();
  EXPECT_TRUE(RunPrograms()) << end_.text << Doings();
  EXPECT_EQ(Interrupts(0, kVector), 1u);
}

// IRQ 3, as firmware has left the 8259s; nobody acknowledges it, so INT stays high.
TEST_P(OurBoard, Lint0AsFixedTakesTheRiseOfThe8259sIntOnce) {
  EndInterrupts(0);
  Program& boot = Of(0);
  Enable(boot);
  WriteReg(boot, Reg::kLvtLint0, kVector);
  boot.Out(kTestLine + 3, 1);
  boot.Halt();
  boot.Window();
  boot.Exit();
  EXPECT_TRUE(RunPrograms()) << end_.text << Doings();
  EXPECT_EQ(Interrupts(0, kVector), 1u);
}

TEST_P(OurBoard, Lint0AsALevelComesAgainAfterEachEoiWhileIntIsHigh) {
  EndInterrupts(0);
  Program& boot = Of(0);
  Enable(boot);
  WriteReg(boot, Reg::kLvtLint0, kLevel | kVector);
  boot.Out(kTestLine + 3, 1);
  for (int i = 0; i < 3; ++i) boot.Halt();
  boot.Exit();
  EXPECT_TRUE(RunPrograms()) << end_.text << Doings();
  EXPECT_GE(Interrupts(0, kVector), 3u);
}

TEST_P(OurBoard, Lint0AsALevelWaitsForItsEoi) {
  Program& boot = Of(0);
  Enable(boot);
  WriteReg(boot, Reg::kLvtLint0, kLevel | kVector);
  boot.Out(kTestLine + 3, 1);
  boot.Halt();
  boot.Window();
  const size_t lint0 = ReadReg(boot, Reg::kLvtLint0);
  boot.Exit();
  EXPECT_TRUE(RunPrograms()) << end_.text << Doings();
  EXPECT_EQ(Interrupts(0, kVector), 1u);
  EXPECT_EQ(Result(boot, lint0).low, kLevel | apic::kLvtRemoteIrr | kVector);
}

TEST_P(OurBoard, Lint0AsNmiTakesTheRiseOfThe8259sInt) {
  Program& boot = Of(0);
  Enable(boot);
  WriteReg(boot, Reg::kLvtLint0, static_cast<uint32_t>(DeliveryMode::kNmi) << 8);
  boot.Out(kTestLine + 3, 1);
  boot.WaitFor(InterruptsGpa(0, 2), 1);
  boot.Exit();
  EXPECT_TRUE(RunPrograms()) << end_.text << Doings();
  EXPECT_EQ(Interrupts(0, 2), 1u);
}

}  // namespace
}  // namespace sipi
