// Pieces of vmm/vcpu and vmm/machine that need no KVM.
#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>
#include <set>
#include <thread>

#include "apic/model/cpu_reset.h"
#include "vmm/machine/config_check.h"
#include "vmm/machine/end_latch.h"
#include "vmm/machine/run.h"
#include "vmm/machine/vcpu_factory.h"
#include "vmm/vcpu/guest_linear.h"
#include "vmm/vcpu/kernel_vcpu.h"
#include "vmm/vcpu/latency_dice.h"
#include "vmm/vcpu/reset_state.h"

namespace sipi {
namespace {

TEST(LatencyDice, StaysWithinItsJitterAndUsesAllOfIt) {
  LatencyDice dice(1, CpuNumber(3));
  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    const uint64_t ns = dice.Draw({.ns = 100, .jitter_ns = 10});
    EXPECT_GE(ns, 90u);
    EXPECT_LE(ns, 110u);
    seen.insert(ns);
  }
  EXPECT_EQ(seen.size(), 21u);
}

TEST(LatencyDice, NeverGoesBelowZeroAndIsExactWithoutJitter) {
  LatencyDice dice(1, CpuNumber(0));
  EXPECT_EQ(dice.Draw({.ns = 1234}), 1234u);
  for (int i = 0; i < 100; ++i) EXPECT_LE(dice.Draw({.ns = 5, .jitter_ns = 50}), 55u);
}

TEST(LatencyDice, SameSeedSameDrawsOtherCpuOtherDraws) {
  const Latency latency{.ns = 1'000'000, .jitter_ns = 1'000'000};
  LatencyDice first(7, CpuNumber(1));
  LatencyDice again(7, CpuNumber(1));
  LatencyDice other(7, CpuNumber(2));
  const uint64_t draw = first.Draw(latency);
  EXPECT_EQ(draw, again.Draw(latency));
  EXPECT_NE(draw, other.Draw(latency));
}

TEST(ResetState, SipiStateIsTheSdmsAndKeepsTheRest) {
  apic::CpuResetState state = apic::StateAfterInit(0x00a20f12, 0x80010033);
  state.cs = apic::EntryAfterSipi(Vector(0x9f)).cs;
  state.rip = 0;
  kvm_sregs fresh = {};
  fresh.apic_base = 0xfee00800;
  const kvm_sregs sregs = SregsOf(state, fresh);
  EXPECT_EQ(sregs.cs.selector, 0x9f00);
  EXPECT_EQ(sregs.cs.base, 0x9f000u);
  EXPECT_EQ(sregs.cs.type, 0xb);
  EXPECT_EQ(sregs.cs.present, 1);
  EXPECT_EQ(sregs.cr0, 0x10u);  // CD and NW as before: clear
  EXPECT_EQ(sregs.efer, 0u);
  EXPECT_EQ(sregs.apic_base, 0xfee00800u);
  const kvm_regs regs = RegsOf(state);
  EXPECT_EQ(regs.rdx, 0x00a20f12u);
  EXPECT_EQ(regs.rflags, 2u);
  EXPECT_EQ(regs.rip, 0u);
}

class GuestLinear : public testing::Test {
 protected:
  GuestLinear() : memory(GuestMemory::Create(1 << 20).value()) {
    sregs.cr0 = 0x80000001;
    sregs.cr3 = 0x1000;
    sregs.efer = 0x500;
  }
  uint64_t& Entry(uint64_t gpa) { return *memory.At<uint64_t>(Gpa(gpa)).value(); }
  GuestMemory memory;
  kvm_sregs sregs = {};
};

TEST_F(GuestLinear, WithoutPagingIsItself) {
  sregs.cr0 = 0x10;
  EXPECT_EQ(LinearToPhysical(0xfffffff0, sregs, memory), Gpa(0xfffffff0));
}

TEST_F(GuestLinear, WalksFourLevelsAndLargePages) {
  Entry(0x1000 + 8 * 511) = 0x2003;
  Entry(0x2000 + 8 * 510) = 0x3003;
  Entry(0x3000) = 0x4003;
  Entry(0x3008) = 0x0020'0083;  // 2 MiB page at 2 MiB
  Entry(0x4000 + 8 * 5) = 0x0007'7003;
  EXPECT_EQ(LinearToPhysical(0xffff'ffff'8000'5123, sregs, memory), Gpa(0x77123));
  EXPECT_EQ(LinearToPhysical(0xffff'ffff'8020'0456, sregs, memory), Gpa(0x200456));
}

TEST_F(GuestLinear, SaysNothingWhereNothingIsMapped) {
  EXPECT_EQ(LinearToPhysical(0x1234, sregs, memory), std::nullopt);
  sregs.cr3 = 0x7fff'f000;  // outside of RAM
  EXPECT_EQ(LinearToPhysical(0x1234, sregs, memory), std::nullopt);
}

TEST(VcpuInspection, OnlyWhatNothingOfItsOwnCanWakeIsBlocked) {
  VcpuInspection halted{.mp_state = KVM_MP_STATE_HALTED, .interrupts_enabled = true};
  EXPECT_TRUE(halted.Blocked());
  halted.timer_armed = true;
  EXPECT_FALSE(halted.Blocked());
  halted.interrupts_enabled = false;
  EXPECT_TRUE(halted.Blocked());
  EXPECT_TRUE((VcpuInspection{.mp_state = KVM_MP_STATE_UNINITIALIZED}).Blocked());
  EXPECT_FALSE((VcpuInspection{.mp_state = KVM_MP_STATE_RUNNABLE}).Blocked());
}

TEST(EndLatch, TheFirstReasonCounts) {
  EndLatch latch;
  EXPECT_FALSE(latch.IsSet());
  EXPECT_TRUE(latch.Set(
      {.kind = EndKind::kFault, .cpu = CpuNumber(3), .code = 0, .text = "first", .error = {}}));
  EXPECT_FALSE(
      latch.Set({.kind = EndKind::kGuestExit, .cpu = {}, .code = 0, .text = {}, .error = {}}));
  EXPECT_EQ(latch.Get().text, "first");
  EXPECT_EQ(latch.Get().cpu, CpuNumber(3));
}

TEST(StopRequest, KeepsTheFirstSignal) {
  StopRequest stop;
  EXPECT_EQ(stop.signal(), 0);
  stop.Request(SIGINT);
  stop.Request(SIGTERM);
  EXPECT_EQ(stop.signal(), SIGINT);
}

TEST(VcpuFactory, MakesEveryApOnceAndNotTheBootCpu) {
  std::vector<std::atomic<int>> made(100);
  VcpuFactory factory(
      100,
      [&](CpuNumber cpu) {
        ++made[cpu.value];
        return absl::OkStatus();
      },
      [](absl::Status) { FAIL(); });
  ASSERT_TRUE(factory.Start().ok());
  EXPECT_TRUE(factory.WaitDone());
  EXPECT_EQ(made[0], 0);
  for (size_t i = 1; i < made.size(); ++i) EXPECT_EQ(made[i], 1) << i;
}

TEST(VcpuFactory, StopsAtTheFirstFailureAndReportsItOnce) {
  std::atomic<int> failures{0};
  std::atomic<int> made{0};
  VcpuFactory factory(
      1000,
      [&](CpuNumber cpu) {
        ++made;
        return cpu.value >= 5 ? absl::ResourceExhaustedError("no more") : absl::OkStatus();
      },
      [&](absl::Status) { ++failures; });
  ASSERT_TRUE(factory.Start().ok());
  EXPECT_FALSE(factory.WaitDone());
  factory.Stop();
  EXPECT_EQ(failures, 1);
  EXPECT_LT(made, 20);
}

TEST(VcpuFactory, AOneCpuMachineIsDoneAtOnce) {
  VcpuFactory factory(
      1, [](CpuNumber) { return absl::OkStatus(); }, [](absl::Status) {});
  ASSERT_TRUE(factory.Start().ok());
  EXPECT_TRUE(factory.WaitDone());
}

RunConfig ConfigFor(IrqchipKind irqchip) {
  RunConfig config;
  config.topology = FlatTopology(4);
  config.irqchip = irqchip;
  return config;
}

TEST(CheckConfig, ImposedStartupLatencyNeedsTheUserIrqchip) {
  RunConfig config = ConfigFor(IrqchipKind::kKernel);
  config.profile.name = "server-128";
  config.profile.startup.ns = 1000;
  const absl::Status status = CheckConfig(config);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(status.message()).find("--irqchip=user"), std::string::npos) << status;
  config.irqchip = IrqchipKind::kUser;
  EXPECT_TRUE(CheckConfig(config).ok());
}

TEST(CheckConfig, LostSipisNeedTheUserIrqchipButALateCpuDoesNot) {
  RunConfig config = ConfigFor(IrqchipKind::kSplit);
  config.fault.cpu = 1;
  config.fault.kind = abi::Fault::kLostSipis;
  EXPECT_NE(std::string(CheckConfig(config).message()).find("--irqchip=user"), std::string::npos);
  config.fault.kind = abi::Fault::kLate;
  EXPECT_TRUE(CheckConfig(config).ok());
}

// A step that the kernel's table does not have would never be entered.
TEST(CheckConfig, AFailingStepIsOneOfTheKernels) {
  RunConfig config = ConfigFor(IrqchipKind::kUser);
  config.fault = {.kind = abi::Fault::kFailStep, .cpu = 1};
  const auto check = [&config](uint64_t state, uint8_t services, abi::HotplugSteps steps) {
    config.fault.value = state;
    config.kernel.services = services;
    config.kernel.hotplug_steps = steps;
    return std::string(CheckConfig(config).message());
  };
  using abi::HotplugSteps;
  for (const uint64_t state : {43u, 142u, 188u}) {
    EXPECT_NE(check(state, 0, HotplugSteps::kX86).find("has no step"), std::string::npos) << state;
    EXPECT_EQ(check(state, 1, HotplugSteps::kX86), "") << state;
  }
  for (const uint64_t state : {17u, 191u}) {
    EXPECT_NE(check(state, 0, HotplugSteps::kPseries).find("--scenario=hotplug"),
              std::string::npos);
    EXPECT_NE(check(state, 1, HotplugSteps::kX86).find("--hotplug-steps=pseries"),
              std::string::npos);
    EXPECT_EQ(check(state, 1, HotplugSteps::kPseries), "") << state;
  }
  for (const uint64_t state : {1u, 58u, 82u, 83u, 84u, 147u, 234u}) {
    EXPECT_EQ(check(state, 0, HotplugSteps::kX86), "") << state;
  }
}

TEST(CheckConfig, CpusThatDoNotExistAreRefused) {
  RunConfig config = ConfigFor(IrqchipKind::kUser);
  config.order = {1, 4};
  EXPECT_FALSE(CheckConfig(config).ok());
  config.order = {1, 0};
  EXPECT_FALSE(CheckConfig(config).ok());
  config.order = {3, 1};
  EXPECT_TRUE(CheckConfig(config).ok());
  config.fault.kind = abi::Fault::kHang;
  config.fault.cpu = 4;
  EXPECT_FALSE(CheckConfig(config).ok());
}

}  // namespace
}  // namespace sipi
