// Who gets an IPI: cases A9 and A10 of the APIC's list. Source: SDM vol 3A, 11.6.2 and 11.12.10.
//
// That a message does NOT arrive is seen like this: the sender's next message, of lower priority,
// has arrived, and a CPU takes what is pending in the order of priority.
#include "apic/regs/destination.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "tests/apic_kvm/program_fixture.h"

namespace sipi {
namespace {

using Receivers = std::set<uint32_t>;
constexpr uint8_t kLast = 0x30;         // of the lowest priority
constexpr uint8_t kFirstVector = 0x60;  // of the message under test; its number is added

struct Message {
  uint32_t dest;
  Shorthand shorthand;
  bool logical;
  Receivers receivers;
};

class Destination : public EachMode {
 protected:
  // The boot CPU has started all others. It sends the messages, then one to each.
  void SendAll(Program& boot, const std::vector<Message>& messages) {
    for (size_t i = 0; i < messages.size(); ++i) {
      const uint8_t vector = static_cast<uint8_t>(kFirstVector + i);
      Send(boot, Command(DeliveryMode::kFixed, messages[i].dest, vector, messages[i].shorthand,
                         messages[i].logical));
    }
    for (uint32_t cpu = 1; cpu < machine_->cpus(); ++cpu) Ping(boot, cpu, kLast, 1);
    boot.Exit();
  }

  // The CPUs that got message `i`. The boot CPU takes no interrupts: what it got is in its IRR.
  Receivers ReceiversOf(size_t i) {
    const uint32_t vector = kFirstVector + static_cast<uint32_t>(i);
    Receivers cpus;
    const uint32_t irr = PageOf(0).Get(static_cast<uint32_t>(Reg::kIrr0) + vector / 32 * 0x10);
    if ((irr >> vector % 32 & 1) != 0) cpus.insert(0);
    for (uint32_t cpu = 1; cpu < machine_->cpus(); ++cpu) {
      const uint32_t count = Interrupts(cpu, static_cast<uint8_t>(vector));
      EXPECT_LE(count, 1u) << "CPU " << cpu;
      if (count != 0) cpus.insert(cpu);
    }
    return cpus;
  }

  void Check(const std::vector<Message>& messages) {
    ASSERT_TRUE(RunPrograms()) << end_.text << Doings();
    for (size_t i = 0; i < messages.size(); ++i) {
      EXPECT_EQ(ReceiversOf(i), messages[i].receivers) << "message " << i;
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Modes, Destination, testing::ValuesIn(kEachMode), ChipAndModeName);

// Case A9.
TEST_P(Destination, ShorthandsIgnoreTheDestinationAndBroadcastsDependOnTheMode) {
  MakeProgrammed(Cpus(4));
  for (uint32_t cpu = 1; cpu < 4; ++cpu) Serve(cpu);
  const uint32_t rubbish = x2apic_ ? 0xdeadbeef : 0xa5;
  std::vector<Message> messages = {
      {rubbish, Shorthand::kSelf, false, {0}},
      {rubbish, Shorthand::kAllIncludingSelf, false, {0, 1, 2, 3}},
      {rubbish, Shorthand::kAllExcludingSelf, false, {1, 2, 3}},
      {rubbish, Shorthand::kAllExcludingSelf, true, {1, 2, 3}},
      {2, Shorthand::kNone, false, {2}},
      {0, Shorthand::kNone, false, {0}},
      {77, Shorthand::kNone, false, {}},
      {0xff, Shorthand::kNone, false, x2apic_ ? Receivers{} : Receivers{0, 1, 2, 3}},
  };
  if (x2apic_) messages.push_back({0xffffffff, Shorthand::kNone, false, {0, 1, 2, 3}});
  Program& boot = Of(0);
  Enable(boot);
  StartOthers(boot);
  SendAll(boot, messages);
  Check(messages);
}

// Case A9: 64 CPUs, each started once; the sender is not hit.
TEST_P(Destination, AllButSelfInitAndSipiStartEveryOtherCpuOnce) {
  MakeProgrammed(Cpus(64));
  for (uint32_t cpu = 1; cpu < 64; ++cpu) Serve(cpu);
  Program& boot = Of(0);
  Enable(boot);
  StartOthers(boot);
  for (uint32_t cpu = 1; cpu < 64; ++cpu) Ping(boot, cpu, kLast, 1);
  boot.Exit();
  ASSERT_TRUE(RunPrograms()) << end_.text << Doings();
  for (uint32_t cpu = 0; cpu < 64; ++cpu) EXPECT_EQ(Starts(cpu), 1u) << "CPU " << cpu;
  EXPECT_EQ(TestWord(0), 63u);
}

// Case A10.
class Logical : public EachChip {};
INSTANTIATE_TEST_SUITE_P(Irqchips, Logical, testing::ValuesIn(kEachChip), IrqchipName);

TEST_P(Logical, Cluster2Mask8001ReachesExactly32And47) {
  constexpr uint8_t kVector = 0x61;
  MakeProgrammed(Cpus(48));
  std::vector<size_t> ldr;
  std::vector<size_t> faults;
  for (uint32_t cpu = 1; cpu < 48; ++cpu) {
    EndInterrupts(cpu);
    Enable(Of(cpu));
    ldr.push_back(Of(cpu).ReadX2(Reg::kLdr));
    faults.push_back(Of(cpu).WriteX2(Reg::kLdr, 1));
    Of(cpu).Increment(WordGpa(0));
    Of(cpu).Stay();
  }
  Program& boot = Of(0);
  Enable(boot);
  StartOthers(boot);
  faults.push_back(boot.WriteX2(Reg::kLdr, 1));
  faults.push_back(boot.ReadX2(Reg::kDfr));
  faults.push_back(boot.WriteX2(Reg::kDfr, 0xffffffff));
  Send(boot, Command(DeliveryMode::kFixed, 0x00028001, kVector, Shorthand::kNone, true));
  for (uint32_t cpu = 1; cpu < 48; ++cpu) Ping(boot, cpu, kLast, 1);
  boot.Exit();
  ASSERT_TRUE(RunPrograms()) << end_.text << Doings();
  for (uint32_t cpu = 1; cpu < 48; ++cpu) {
    EXPECT_EQ(Interrupts(cpu, kVector), cpu == 32 || cpu == 47 ? 1u : 0u) << "CPU " << cpu;
    EXPECT_EQ(Result(Of(cpu), ldr[cpu - 1]).low, (cpu >> 4) << 16 | 1u << (cpu & 15));
    EXPECT_EQ(Result(Of(cpu), faults[cpu - 1]).fault, 1u);
  }
  for (size_t i = 47; i < faults.size(); ++i) EXPECT_EQ(Result(boot, faults[i]).fault, 1u) << i;
}

class XApicLogical : public Destination {
 protected:
  void MakeWithModel(uint32_t dfr, const std::vector<uint32_t>& logical_ids) {
    MakeProgrammed(Cpus(static_cast<uint32_t>(logical_ids.size())));
    for (uint32_t cpu = 0; cpu < machine_->cpus(); ++cpu) {
      Enable(Of(cpu));
      Of(cpu).WriteX(Reg::kDfr, dfr);
      Of(cpu).WriteX(Reg::kLdr, logical_ids[cpu] << 24);
      if (cpu == 0) continue;
      EndInterrupts(cpu);
      Of(cpu).Increment(WordGpa(0));
      Of(cpu).Stay();
    }
    StartOthers(Of(0));
  }
};
INSTANTIATE_TEST_SUITE_P(Modes, XApicLogical,
                         testing::Values(ChipAndMode{IrqchipKind::kUser, false},
                                         ChipAndMode{IrqchipKind::kSplit, false},
                                         ChipAndMode{IrqchipKind::kKernel, false}),
                         ChipAndModeName);

TEST_P(XApicLogical, FlatModelMatchesBits) {
  MakeWithModel(apic::kDfrFlat, {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80});
  const std::vector<Message> messages = {
      {0x05, Shorthand::kNone, true, {0, 2}},
      {0x80, Shorthand::kNone, true, {7}},
      {0x00, Shorthand::kNone, true, {}},
      {0xff, Shorthand::kNone, true, {0, 1, 2, 3, 4, 5, 6, 7}},
  };
  SendAll(Of(0), messages);
  Check(messages);
}

TEST_P(XApicLogical, ClusterModelMatchesClusterAndBits) {
  MakeWithModel(apic::kDfrCluster, {0x01, 0x02, 0x04, 0x08, 0x11, 0x12, 0x14, 0x18});
  const std::vector<Message> messages = {
      {0x15, Shorthand::kNone, true, {4, 6}},
      {0x08, Shorthand::kNone, true, {3}},
      {0x25, Shorthand::kNone, true, {}},
      {0xff, Shorthand::kNone, true, {0, 1, 2, 3, 4, 5, 6, 7}},
  };
  SendAll(Of(0), messages);
  Check(messages);
}

// Case A10: CPU 3 has stayed in xAPIC mode, the others are in x2APIC mode.
TEST_P(Logical, ACpuStillInXApicModeIsReachedByItsIdAndByBroadcast) {
  constexpr uint64_t kXApicBase = apic::kApicBaseGpa | apic::kApicBaseEnable;
  MakeProgrammed(Cpus(4));
  for (const uint32_t cpu : {1u, 2u}) Serve(cpu);
  Program& late = Of(3);
  late.Wrmsr(apic::kMsrApicBase, apic::kApicBaseGpa);  // from x2APIC mode it leads by way of off
  late.Wrmsr(apic::kMsrApicBase, kXApicBase);
  late.WriteX(Reg::kSvr, 0x1ff);
  late.WriteX(Reg::kLdr, 0x08000000);
  SetEoi(3, EoiBy::kMmio);
  late.Increment(WordGpa(0));
  late.Stay();
  Program& boot = Of(0);
  Enable(boot);
  StartOthers(boot);
  Send(boot, Fixed(3, 0x61));
  Send(boot, Command(DeliveryMode::kFixed, 0, 0x62, Shorthand::kAllExcludingSelf));
  Send(boot, Command(DeliveryMode::kFixed, 0x00000006, 0x63, Shorthand::kNone, true));
  Send(boot, Command(DeliveryMode::kFixed, 0x00020008, 0x64, Shorthand::kNone, true));
  for (uint32_t cpu = 1; cpu < 4; ++cpu) Ping(boot, cpu, kLast, 1);
  boot.Exit();
  ASSERT_TRUE(RunPrograms()) << end_.text << Doings();
  for (uint32_t cpu = 1; cpu < 4; ++cpu) {
    SCOPED_TRACE(cpu);
    EXPECT_EQ(Interrupts(cpu, 0x61), cpu == 3 ? 1u : 0u);
    EXPECT_EQ(Interrupts(cpu, 0x62), 1u);
    EXPECT_EQ(Interrupts(cpu, 0x63), cpu == 3 ? 0u : 1u);
  }
  SKIP_IF_KVM_DIFFERS(Interrupts(3, 0x64) == 0,
                      "a CPU in xAPIC mode matches the low 8 bits of a 32-bit logical destination "
                      "(11.12.10.2)");
  EXPECT_EQ(Interrupts(3, 0x64), 0u) << "cluster 2 has no CPU";
}

}  // namespace
}  // namespace sipi
