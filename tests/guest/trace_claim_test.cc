// A record is taken from the right ring, and held against the right ring's end, wherever its thread
// loses its CPU. The claim's own instructions run here, step by step: GS is this thread's per-CPU
// header, as in the guest, and the trap after each instruction stands for the interrupt.
#include "guest/platform/x86/trace_claim.h"

#include <asm/prctl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>

namespace sipi::platform {
namespace {

constexpr uint64_t kRecord = sizeof(abi::TraceRecord);
constexpr uint64_t kTrap = 0x100;  // RFLAGS.TF

void SetGs(const abi::PerCpuHeader& header) {
  ASSERT_EQ(syscall(SYS_arch_prctl, ARCH_SET_GS, &header), 0);
}

struct Preemption {
  const abi::PerCpuHeader* from = nullptr;  // the CPU that the thread loses
  const abi::PerCpuHeader* to = nullptr;    // and that it goes on on
  uint32_t after_steps = 0;
  uint32_t steps = 0;
};
Preemption g_preemption;

// Async-signal-safe: a system call and memory.
void OnStep(int, siginfo_t*, void* context) {
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  if (++g_preemption.steps != g_preemption.after_steps) return;
  auto rip = static_cast<uint64_t>(registers[REG_RIP]);
  auto rflags = static_cast<uint64_t>(registers[REG_EFL]);
  FinishTraceClaim(rip, static_cast<uint64_t>(registers[REG_RCX]), rflags,
                   g_preemption.from->ring_end);
  registers[REG_RIP] = static_cast<greg_t>(rip);
  registers[REG_EFL] = static_cast<greg_t>(rflags & ~kTrap);  // the rest at full speed
  (void)syscall(SYS_arch_prctl, ARCH_SET_GS, g_preemption.to);
}

// Takes a record on `from`, preempted after so many instructions, and goes on on `to`.
TraceClaim ClaimAcross(const abi::PerCpuHeader& from, const abi::PerCpuHeader& to, uint32_t steps) {
  g_preemption = {.from = &from, .to = &to, .after_steps = steps};
  SetGs(from);
  // Beyond the red zone.
  asm volatile("addq $-128, %%rsp; pushfq; orq $0x100, (%%rsp); popfq; leaq 128(%%rsp), %%rsp" ::
                   : "memory", "cc");
  const TraceClaim claim = ClaimTraceRecord();
  asm volatile("addq $-128, %%rsp; pushfq; andq $~0x100, (%%rsp); popfq; leaq 128(%%rsp), %%rsp" ::
                   : "memory", "cc");
  return claim;
}

abi::PerCpuHeader Ring(uint64_t begin, uint64_t capacity, uint64_t written) {
  return {.ring_cursor = begin + written * kRecord,
          .ring_end = begin + capacity * kRecord,
          .ring_begin = begin,
          .self = 0};
}

class TraceClaimTest : public testing::Test {
 protected:
  void SetUp() override {
    struct sigaction action = {};
    action.sa_sigaction = OnStep;
    action.sa_flags = SA_SIGINFO;
    ASSERT_EQ(sigaction(SIGTRAP, &action, &before_), 0);
  }
  void TearDown() override {
    (void)sigaction(SIGTRAP, &before_, nullptr);
    (void)syscall(SYS_arch_prctl, ARCH_SET_GS, nullptr);
  }

 private:
  struct sigaction before_ = {};
};

// More steps than the claim has instructions, however it is compiled: at the end nothing comes
// between.
constexpr uint32_t kMostSteps = 40;

TEST_F(TraceClaimTest, ARecordIsTakenFromOneRingOnly) {
  for (const uint64_t other : {uint64_t{0x1000}, uint64_t{0x9000}}) {
    for (uint32_t steps = 1; steps <= kMostSteps; ++steps) {
      SCOPED_TRACE(testing::Message() << "other ring at " << other << ", after step " << steps);
      const abi::PerCpuHeader before = Ring(0x5000, 4, 1);
      abi::PerCpuHeader own = before;
      abi::PerCpuHeader next = Ring(other, 4, 1);
      const TraceClaim claim = ClaimAcross(own, next, steps);
      EXPECT_FALSE(claim.full);
      const bool here = own.ring_cursor != before.ring_cursor;
      EXPECT_EQ(claim.at, here ? before.ring_cursor : other + kRecord);
      EXPECT_EQ(own.ring_cursor - before.ring_cursor + next.ring_cursor - other, 2 * kRecord);
    }
  }
}

TEST_F(TraceClaimTest, AFullRingStaysFullWhereItsThreadGoesOnElsewhere) {
  for (const uint64_t other : {uint64_t{0x1000}, uint64_t{0x9000}}) {
    bool here = false;
    for (uint32_t steps = 1; steps <= kMostSteps; ++steps) {
      SCOPED_TRACE(testing::Message() << "other ring at " << other << ", after step " << steps);
      const abi::PerCpuHeader before = Ring(0x5000, 4, 4);
      abi::PerCpuHeader own = before;
      abi::PerCpuHeader next = Ring(other, 4, 1);
      const TraceClaim claim = ClaimAcross(own, next, steps);
      const bool from_own = own.ring_cursor != before.ring_cursor;
      here = here || from_own;
      EXPECT_EQ(claim.full, from_own);
    }
    EXPECT_TRUE(here);
  }
}

// Other code may be interrupted at any place as well.
TEST_F(TraceClaimTest, OtherCodeIsLeftAlone) {
  const std::array<uint8_t, sizeof(kTraceClaimCompare)> other = {0x65, 0x48, 0x3b, 0x0c, 0x25, 16};
  auto rip = reinterpret_cast<uint64_t>(other.data());
  uint64_t rflags = 0x202;
  FinishTraceClaim(rip, 1, rflags, 2);
  EXPECT_EQ(rip, reinterpret_cast<uint64_t>(other.data()));
  EXPECT_EQ(rflags, 0x202u);
}

}  // namespace
}  // namespace sipi::platform
