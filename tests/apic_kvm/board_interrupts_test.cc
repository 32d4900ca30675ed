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
constexpr uint8_t kOther = 0x61;
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

INSTANTIATE_TEST_SUITE_P(User, OurBoard, testing::ValuesIn(kEachUserMode), ChipAndModeName);

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

class Lint0 : public OurBoard {
 protected:
  // The boot CPU's LINT0 becomes `entry`, then the 8259's INT rises: for IRQ 3, as firmware has
  // left the 8259s. Nobody acknowledges it, so INT stays high.
  Program& RaiseAs(uint32_t entry) {
    Program& boot = Of(0);
    Enable(boot);
    WriteReg(boot, Reg::kLvtLint0, entry);
    boot.Out(kTestLine + 3, 1);
    return boot;
  }
  static uint32_t Entry(DeliveryMode mode) { return static_cast<uint32_t>(mode) << 8; }
  // What comes next is not withheld.
  void WorksAfterwards(Program& boot) {
    EndInterrupts(0);
    Send(boot, Fixed(0, kVector));
    boot.Halt();
    ASSERT_NO_FATAL_FAILURE(RunToExit());
    EXPECT_EQ(Interrupts(0, kVector), 1u);
    EXPECT_EQ(Word(Area(0) + AreaOffset::kLogCount), 1u) << "interrupts in all";
  }
};

INSTANTIATE_TEST_SUITE_P(User, Lint0, testing::ValuesIn(kEachUserMode), ChipAndModeName);

TEST_P(Lint0, AsFixedTakesTheRiseOfThe8259sIntOnce) {
  EndInterrupts(0);
  Program& boot = RaiseAs(kVector);
  boot.Halt();
  boot.Window();
  ASSERT_NO_FATAL_FAILURE(RunToExit());
  EXPECT_EQ(Interrupts(0, kVector), 1u);
}

TEST_P(Lint0, AsALevelComesAgainAfterEachEoiWhileIntIsHigh) {
  EndInterrupts(0);
  Program& boot = RaiseAs(kLevel | kVector);
  for (int i = 0; i < 3; ++i) boot.Halt();
  ASSERT_NO_FATAL_FAILURE(RunToExit());
  EXPECT_GE(Interrupts(0, kVector), 3u);
}

TEST_P(Lint0, AsALevelWaitsForItsEoi) {
  Program& boot = RaiseAs(kLevel | kVector);
  boot.Halt();
  boot.Window();
  const size_t lint0 = ReadReg(boot, Reg::kLvtLint0);
  ASSERT_NO_FATAL_FAILURE(RunToExit());
  EXPECT_EQ(Interrupts(0, kVector), 1u);
  EXPECT_EQ(Result(boot, lint0).low, kLevel | apic::kLvtRemoteIrr | kVector);
}

TEST_P(Lint0, AsNmiTakesTheRise) {
  RaiseAs(Entry(DeliveryMode::kNmi)).WaitFor(InterruptsGpa(0, 2), 1);
  ASSERT_NO_FATAL_FAILURE(RunToExit());
  EXPECT_EQ(Interrupts(0, 2), 1u);
}

// 11.5.1: INIT; the boot CPU goes on in the firmware at F000:FFF0, which here lets the test enter
// another program.
TEST_P(Lint0, AsInitRestartsTheBootCpuOnce) {
  Program& after = NewProgram();
  after.Exit(0x32);
  uint32_t restarts = 0;
  const auto load = [&](const GuestMemory&, const VcpuEvents::EnterState& enter) {
    ++restarts;
    Word(Area(0) + AreaOffset::kProgram) = static_cast<uint32_t>(after.gpa());
    return enter(EnterInterpreter);
  };
  ASSERT_TRUE(machine_->SetFirmware(load).ok());
  RaiseAs(Entry(DeliveryMode::kInit)).Park();
  ASSERT_TRUE(RunPrograms()) << end_.text << Doings();
  EXPECT_EQ(end_.code, 0x32u);
  EXPECT_EQ(restarts, 1u);
  EXPECT_EQ(Starts(0), 2u);
  EXPECT_EQ(machine_->Counters().at("inits"), 1u);
}

// There is no system management mode: the SMI is lost, and counted. The CPU goes on.
TEST_P(Lint0, AsSmiIsCountedAsUndeliverable) {
  WorksAfterwards(RaiseAs(Entry(DeliveryMode::kSmi)));
  EXPECT_EQ(machine_->Counters().at("ipis.undeliverable"), 1u);
}

// 11.5.1: "All other combinations are reserved."
TEST_P(Lint0, InAReservedDeliveryModeDoesNothing) {
  for (const uint32_t mode : {1u, 3u, 6u}) {
    SCOPED_TRACE(mode);
    MakeProgrammed(WithBoard(Cpus(1)));
    WorksAfterwards(RaiseAs(mode << 8 | kOther));
    EXPECT_EQ(Interrupts(0, kOther), 0u);
    EXPECT_EQ(machine_->Counters().at("ipis.undeliverable"), 0u);
    machine_.reset();
  }
}

}  // namespace
}  // namespace sipi
