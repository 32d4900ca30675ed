// A local APIC's registers after INIT: case A8 of the APIC's list. Source: SDM vol 3A, 11.4.7.1 and
// 11.4.7.3; 11.12.5 for what x2APIC mode keeps.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "apic/regs/destination.h"
#include "apic/regs/lvt.h"
#include "tests/apic_kvm/program_fixture.h"

namespace sipi {
namespace {

constexpr uint8_t kInService = 0x77;  // taken and not ended
constexpr uint8_t kRequested = 0x66;  // pending
constexpr uint8_t kTimer = 0x55;
constexpr uint32_t kTicksOf10Ms = 30'000'000;  // at 3 GHz

class ApicReset : public EachMode {
 protected:
  // The AP: nothing stays as it was after reset.
  void GetDirty(Program& ap) {
    Enable(ap);
    WriteReg(ap, Reg::kTpr, 0x20);
    if (!x2apic_) {
      ap.WriteX(Reg::kLdr, 0x12000000);
      ap.WriteX(Reg::kDfr, apic::kDfrCluster);
    }
    WriteReg(ap, Reg::kLvtThermal, 0x51);
    WriteReg(ap, Reg::kLvtPerf, 0x52);
    WriteReg(ap, Reg::kLvtLint0, 0x53);
    WriteReg(ap, Reg::kLvtLint1, 0x400);
    WriteReg(ap, Reg::kLvtError, 0x54);
    Send(ap, Command(DeliveryMode::kFixed, 0, kInService, Shorthand::kSelf));
    ap.Halt();
    Send(ap, Command(DeliveryMode::kFixed, 0, 5, Shorthand::kSelf));  // illegal: an error
    WriteReg(ap, Reg::kEsr, 0);
    WriteReg(ap, Reg::kTimerDivide, 0xb);
    WriteReg(ap, Reg::kLvtTimer, kTimer | apic::kLvtTimerPeriodic);
    WriteReg(ap, Reg::kTimerInitial, 100'000);  // 100 us
    Send(ap, Command(DeliveryMode::kFixed, 0, kRequested, Shorthand::kSelf));
    ap.Increment(WordGpa(0));
    ap.Park();
  }
};

INSTANTIATE_TEST_SUITE_P(Modes, ApicReset, testing::ValuesIn(kEachMode), ChipAndModeName);

TEST_P(ApicReset, InitResetsEveryRegisterButTheIdAndNoInterruptComes) {
  MakeProgrammed(Cpus(2));
  GetDirty(Of(1));
  Program& after = NewProgram();
  std::vector<std::pair<Reg, uint32_t>> expected = {
      {Reg::kId, x2apic_ ? 1 : 1u << 24},
      {Reg::kTpr, 0},
      {Reg::kPpr, 0},
      {Reg::kLdr, x2apic_ ? apic::X2ApicLogicalId(ApicId(1)) : 0},
      {Reg::kSvr, apic::kSvrReset},
      {Reg::kEsr, 0},
      {Reg::kIcrLow, 0},
      {Reg::kLvtTimer, apic::kLvtMasked},
      {Reg::kLvtThermal, apic::kLvtMasked},
      {Reg::kLvtPerf, apic::kLvtMasked},
      {Reg::kLvtLint0, apic::kLvtMasked},
      {Reg::kLvtLint1, apic::kLvtMasked},
      {Reg::kLvtError, apic::kLvtMasked},
      {Reg::kTimerInitial, 0},
      {Reg::kTimerCurrent, 0},
      {Reg::kTimerDivide, 0},
  };
  if (!x2apic_) expected.insert(expected.end(), {{Reg::kDfr, apic::kDfrFlat}, {Reg::kIcrHigh, 0}});
  for (uint16_t offset = 0x100; offset < 0x280; offset += 0x10) {
    expected.emplace_back(static_cast<Reg>(offset), 0);  // ISR, TMR, IRR
  }
  std::vector<size_t> reads;
  for (const auto& [reg, value] : expected) reads.push_back(ReadReg(after, reg));
  const size_t taken_before = after.Read32(Area(1) + AreaOffset::kLogCount);
  after.Delay(kTicksOf10Ms);
  after.Window();
  const size_t taken_after = after.Read32(Area(1) + AreaOffset::kLogCount);
  after.Increment(WordGpa(0));
  after.Stay();

  Program& boot = Of(0);
  BeReachable(boot);
  Enable(boot);
  Send(boot, Command(DeliveryMode::kInit, 1));
  Send(boot, Command(DeliveryMode::kStartUp, 1, kInterpreterSipi));
  boot.WaitFor(WordGpa(0), 1);
  boot.Store(Area(1) + AreaOffset::kProgram, static_cast<uint32_t>(after.gpa()));
  Send(boot, Command(DeliveryMode::kInit, 1));
  Send(boot, Command(DeliveryMode::kStartUp, 1, kInterpreterSipi));
  boot.WaitFor(WordGpa(0), 2);
  boot.Exit();
  ASSERT_TRUE(RunPrograms()) << end_.text << Doings();
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(Result(after, reads[i]).low, expected[i].second)
        << "register " << std::hex << static_cast<uint32_t>(expected[i].first);
  }
  EXPECT_EQ(Interrupts(1, kInService), 1u) << "the test's own set-up";
  EXPECT_EQ(Result(after, taken_before).low, 1u);
  EXPECT_EQ(Result(after, taken_after).low, 1u);
}

}  // namespace
}  // namespace sipi
