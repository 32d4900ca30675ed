// An NMI to a CPU that waits for a SIPI is held until that comes: SDM vol 3C, 27.7.2, which says of
// NMIs that the state blocks them, and of the SIPIs that other states get that they are discarded.
#include <gtest/gtest.h>

#include <array>

#include "tests/apic_kvm/program_fixture.h"

namespace sipi {
namespace {

constexpr uint32_t kNmis = 0;     // test word: NMIs that the AP has handled,
constexpr uint32_t kAtStart = 1;  // those before its first instruction,
constexpr uint32_t kRuns = 2;     // and 1 once it runs

constexpr uint8_t kStartVector = 9;
// MOV EAX, [600H]; MOV [604H], EAX; LOCK INC DWORD PTR [608H]; HLT; JMP back to the HLT.
constexpr std::array<uint8_t, 17> kStart = {0x66, 0xa1, 0x00, 0x06, 0x66, 0xa3, 0x04, 0x06, 0xf0,
                                            0x66, 0xff, 0x06, 0x08, 0x06, 0xf4, 0xeb, 0xfd};
constexpr uint64_t kHandlerGpa = 0xa000;
// LOCK INC DWORD PTR [600H]; IRET.
constexpr std::array<uint8_t, 7> kHandler = {0xf0, 0x66, 0xff, 0x06, 0x00, 0x06, 0xcf};

class StartupNmi : public EachMode {
 protected:
  void SetUp() override {
    EachMode::SetUp();
    if (IsSkipped()) return;
    MakeProgrammed(Cpus(2));
    ASSERT_TRUE(Write(uint64_t{kStartVector} << 12, kStart));
    ASSERT_TRUE(Write(kHandlerGpa, kHandler));
    Word(2 * 4) = static_cast<uint32_t>(kHandlerGpa >> 4) << 16;
    BeReachable(Of(0));
    Enable(Of(0));
    SendToAp(DeliveryMode::kInit);  // KVM's APs do not wait for a SIPI from power-up
  }

  bool Write(uint64_t gpa, std::span<const uint8_t> code) {
    return machine_->memory().Write(Gpa(gpa), std::as_bytes(code)).ok();
  }
  void SendToAp(DeliveryMode mode, uint8_t vector = 0) { Send(Of(0), Command(mode, 1, vector)); }
  void StartAp() {
    SendToAp(DeliveryMode::kStartUp, kStartVector);
    Of(0).WaitFor(WordGpa(kRuns), 1);
  }
};

INSTANTIATE_TEST_SUITE_P(Modes, StartupNmi, testing::ValuesIn(kEachMode), ChipAndModeName);

// KVM drops it where the CPU has not looked at the INIT before it yet.
TEST_P(StartupNmi, OneToAWaitingCpuIsDeliveredBeforeTheFirstInstruction) {
  SendToAp(DeliveryMode::kNmi);
  StartAp();
  ASSERT_NO_FATAL_FAILURE(RunToExit());
  EXPECT_GE(TestWord(kNmis), user_ ? 1u : 0u);
  EXPECT_LE(TestWord(kNmis), 1u);
  EXPECT_EQ(TestWord(kAtStart), TestWord(kNmis));
}

TEST_P(StartupNmi, AnInitEndsTheOneThatWasSentBeforeIt) {
  SendToAp(DeliveryMode::kNmi);
  SendToAp(DeliveryMode::kInit);
  StartAp();
  ASSERT_NO_FATAL_FAILURE(RunToExit());
  EXPECT_EQ(TestWord(kNmis), 0u);
}

class UserStartupNmi : public StartupNmi {};

INSTANTIATE_TEST_SUITE_P(User, UserStartupNmi, testing::ValuesIn(kEachUserMode), ChipAndModeName);

TEST_P(UserStartupNmi, OneThatWasHeldDoesNotBlockThoseAfterTheStart) {
  SendToAp(DeliveryMode::kNmi);
  StartAp();
  SendToAp(DeliveryMode::kNmi);
  Of(0).WaitFor(WordGpa(kNmis), 2);
  ASSERT_NO_FATAL_FAILURE(RunToExit());
  EXPECT_EQ(TestWord(kAtStart), 1u);
}

}  // namespace
}  // namespace sipi
