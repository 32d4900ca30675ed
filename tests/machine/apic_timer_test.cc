// The local APIC timer's dealings with the host: its kicks and its clock.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "tests/machine/machine_fixture.h"

namespace sipi {
namespace {

class ApicTimerTest : public MachineTest {
 protected:
  // POSIX timers count against this limit, root's too.
  void SetUp() override {
    MachineTest::SetUp();
    getrlimit(RLIMIT_SIGPENDING, &limit_);
  }
  void TearDown() override {
    setrlimit(RLIMIT_SIGPENDING, &limit_);
    MachineTest::TearDown();
  }
  void AllowNoTimers() {
    const rlimit none{.rlim_cur = 0, .rlim_max = limit_.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_SIGPENDING, &none), 0);
  }

 private:
  rlimit limit_ = {};
};

// Without a timer of the host a CPU that runs would never be interrupted.
TEST_F(ApicTimerTest, ARunningCpuForWhomThereIsNoTimerIsAFault) {
  Make(Options(1), payload::boot_timer_spin(), {}, payload::handler_exit());
  AllowNoTimers();
  const RunEnd end = Run();
  EXPECT_EQ(end.kind, EndKind::kFault) << Doings();
  EXPECT_NE(end.text.find("timer_create for CPU 0: "), std::string::npos) << end.text;
  EXPECT_NE(end.text.find("ulimit -i"), std::string::npos) << end.text;
}

// What a guest makes of its TSC, KVM keeps to itself; here the host changes it behind its
// back too. 2^40 cycles are minutes: by the TSC of before, the deadline would come too late.
TEST_F(ApicTimerTest, ADeadlineIsByTheTscThatTheCpuHasNow) {
  MachineOptions options = Options(1);
  options.board = BoardOptions{.ram_bytes = 1 << 20};
  Make(std::move(options), payload::boot_deadline_halt(), {}, payload::handler_exit());
  constexpr uint32_t kMsrTsc = 0x10;
  constexpr int64_t kForward = int64_t{1} << 40;
  Vcpu& vcpu = machine_->thread(CpuNumber(0)).vcpu();
  const absl::StatusOr<int64_t> before = vcpu.TscOffset();
  const absl::StatusOr<uint64_t> tsc = vcpu.GetMsr(kMsrTsc);
  ASSERT_TRUE(before.ok() && tsc.ok());
  ASSERT_TRUE(vcpu.SetMsr(kMsrTsc, *tsc + uint64_t{kForward}).ok());
  const absl::StatusOr<int64_t> after = vcpu.TscOffset();
  ASSERT_TRUE(after.ok());
  if (*after - *before < kForward / 2) GTEST_SKIP() << "this KVM keeps its TSC";
  EXPECT_EQ(Run(10'000).kind, EndKind::kGuestExit) << Doings();
}

}  // namespace
}  // namespace sipi
