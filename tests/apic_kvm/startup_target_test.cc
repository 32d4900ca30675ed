// Where a CPU goes on after a Start-Up IPI, and INITs to the boot CPU and to oneself: cases A5 and
// A6 of the APIC's list.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "tests/apic_kvm/program_fixture.h"

namespace sipi {
namespace {

// LOCK INC DWORD PTR [600H], which is TestWord(0); CLI; HLT.
constexpr std::array<uint8_t, 8> kCount = {0xf0, 0x66, 0xff, 0x06, 0x00, 0x06, 0xfa, 0xf4};

// Case A5.
TEST_P(EachChip, ASipiStartsAtItsPage) {
  for (const uint8_t vector : std::array<uint8_t, 4>{0x00, 0x01, 0x9f, 0xff}) {
    SCOPED_TRACE(vector);
    MakeProgrammed(Cpus(2));
    const Gpa page(uint64_t{vector} << 12);
    ASSERT_TRUE(machine_->memory().Write(page, std::as_bytes(std::span(kCount))).ok());
    Program& boot = Of(0);
    BeReachable(boot);
    Enable(boot);
    Send(boot, Command(DeliveryMode::kInit, 1));
    Send(boot, Command(DeliveryMode::kStartUp, 1, vector));
    boot.WaitFor(WordGpa(0), 1);
    boot.Exit();
    ASSERT_TRUE(RunPrograms()) << end_.text << Doings();
    Vcpu& ap = machine_->thread(CpuNumber(1)).vcpu();
    const auto sregs = ap.GetSregs();
    const auto regs = ap.GetRegs();
    ASSERT_TRUE(sregs.ok() && regs.ok());
    EXPECT_EQ(sregs->cs.selector, vector << 8);
    EXPECT_EQ(sregs->cs.base, page.value);
    // It counted, so it ran from IP 0 on; now it is at or behind its HLT.
    EXPECT_LE(regs->rip, kCount.size());
    machine_.reset();
  }
}

// Case A5: the SDM reserves A0H to BFH. They start like any other vector; with no RAM there the run
// ends with a message that names CPU and place.
TEST_P(EachChip, ASipiToWhereNoRamIsIsReportedWithCpuAndPlace) {
  for (const uint8_t vector : std::array<uint8_t, 2>{0xa0, 0xbf}) {
    SCOPED_TRACE(vector);
    MakeProgrammed(Cpus(2));
    // Takes the RAM from A0000H to BFFFFH out.
    std::byte* ram = machine_->memory().Pointer(Gpa(0), 1);
    const uint64_t bytes = machine_->memory().size_bytes();
    ASSERT_TRUE(machine_->vm().SetMemoryRegion(0, Gpa(0), 0, ram).ok());
    ASSERT_TRUE(machine_->vm().SetMemoryRegion(0, Gpa(0), 0xa0000, ram).ok());
    ASSERT_TRUE(
        machine_->vm().SetMemoryRegion(8, Gpa(0xc0000), bytes - 0xc0000, ram + 0xc0000).ok());
    Program& boot = Of(0);
    BeReachable(boot);
    Enable(boot);
    Send(boot, Command(DeliveryMode::kInit, 1));
    Send(boot, Command(DeliveryMode::kStartUp, 1, vector));
    boot.Park();
    EXPECT_FALSE(RunPrograms(5'000));
    EXPECT_EQ(end_.kind, EndKind::kFault) << Doings();
    EXPECT_EQ(end_.cpu, CpuNumber(1));
    const std::string base = vector == 0xa0 ? "CS 0xa000 base 0xa0000" : "CS 0xbf00 base 0xbf000";
    EXPECT_NE(end_.text.find(base), std::string::npos) << end_.text;
    machine_.reset();
  }
}

// Case A6: "self" and "all including self" are not legal for INIT (table 11-3) and reset nobody.
// The sender, the boot CPU and a third CPU go on.
TEST_P(EachMode, InitToOneselfByShorthandResetsNobody) {
  MakeProgrammed(Cpus(3));
  Serve(2);
  Program& ap = Of(1);
  EndInterrupts(1);
  Enable(ap);
  ap.Increment(WordGpa(0));
  ap.WaitFor(WordGpa(1), 1);
  Send(ap, Command(DeliveryMode::kInit, 0, 0, Shorthand::kSelf));
  Send(ap, Command(DeliveryMode::kInit, 0, 0, Shorthand::kAllIncludingSelf));
  ap.Delay(2'000'000);
  ap.Increment(WordGpa(2));
  ap.Stay();
  Program& boot = Of(0);
  Enable(boot);
  StartOthers(boot);
  boot.Store(WordGpa(1), 1);
  boot.WaitFor(WordGpa(2), 1);
  Ping(boot, 1, 0x40, 1);
  Ping(boot, 2, 0x40, 1);
  boot.Exit();
  const bool ended = RunPrograms(user_ ? 20'000 : 500);
  SKIP_IF_KVM_DIFFERS(ended,
                      "INIT with the shorthands self and all-including-self resets the "
                      "sender (11.6.1, table 11-3)");
  ASSERT_TRUE(ended) << end_.text << Doings();
  EXPECT_EQ(Starts(0), 1u);
  EXPECT_EQ(Starts(1), 1u);
  EXPECT_EQ(Starts(2), 1u);
}

// Case A6: from the boot CPU, too.
TEST_P(EachMode, InitToItselfByShorthandLeavesTheBootCpu) {
  MakeProgrammed(Cpus(1));
  Program& boot = Of(0);
  Enable(boot);
  Send(boot, Command(DeliveryMode::kInit, 0, 0, Shorthand::kSelf));
  Send(boot, Command(DeliveryMode::kInit, 0, 0, Shorthand::kAllIncludingSelf));
  boot.Delay(2'000'000);  // a millisecond: KVM resets a CPU some time after it has sent
  boot.Exit();
  const bool ended = RunPrograms(user_ ? 20'000 : 500);
  SKIP_IF_KVM_DIFFERS(ended,
                      "INIT with the shorthands self and all-including-self resets the "
                      "sender (11.6.1, table 11-3)");
  ASSERT_TRUE(ended) << end_.text << Doings();
  EXPECT_EQ(Starts(0), 1u);
}

}  // namespace
}  // namespace sipi
