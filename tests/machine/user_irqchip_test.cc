// The irqchip `user`: whose mailbox a command or a device's message ends up in.
#include "vmm/irqchip/user_irqchip.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "apic/model/local_apic.h"

namespace sipi {
namespace {

class UserIrqchipUnit : public testing::Test {
 protected:
  UserIrqchip Chip(const abi::FaultSpec& fault = {}, bool kvm_icr = false) {
    return UserIrqchip(
        ids, apic::ApicMode::kX2Apic, fault,
        [this](CpuNumber cpu) -> CpuMailbox& { return *mailboxes[cpu.value]; }, kvm_icr);
  }
  void SetUp() override {
    for (int i = 0; i < 4; ++i) mailboxes.push_back(std::make_unique<CpuMailbox>(i == 0));
  }
  static apic::Icr Command(apic::DeliveryMode mode, uint32_t dest, uint8_t vector = 0) {
    apic::Icr icr;
    icr.mode = mode;
    icr.dest = dest;
    icr.vector = Vector(vector);
    return icr;
  }

  const std::vector<ApicId> ids = {ApicId(7), ApicId(300), ApicId(0), ApicId(4095)};
  std::vector<std::unique_ptr<CpuMailbox>> mailboxes;
  SendCounters counters;
};

TEST_F(UserIrqchipUnit, InitReachesExactlyTheCpuWithThatApicId) {
  UserIrqchip chip = Chip();
  chip.Send(Command(apic::DeliveryMode::kInit, 4095), CpuNumber(0), counters);
  EXPECT_TRUE(mailboxes[3]->startup().Pending());
  EXPECT_FALSE(mailboxes[1]->HasWork());
  EXPECT_FALSE(mailboxes[2]->HasWork());
  EXPECT_EQ(counters.inits, 1u);
}

TEST_F(UserIrqchipUnit, ACommandToAnUnusedIdReachesNobodyAndIsCounted) {
  UserIrqchip chip = Chip();
  chip.Send(Command(apic::DeliveryMode::kInit, 12), CpuNumber(0), counters);
  EXPECT_EQ(counters.undeliverable, 1u);
}

TEST_F(UserIrqchipUnit, AllButSelfNeverHitsTheSender) {
  UserIrqchip chip = Chip();
  apic::Icr icr = Command(apic::DeliveryMode::kInit, 0x1234);
  icr.shorthand = apic::Shorthand::kAllExcludingSelf;
  chip.Send(icr, CpuNumber(0), counters);
  EXPECT_FALSE(mailboxes[0]->HasWork());
  EXPECT_EQ(counters.inits, 3u);
}

TEST_F(UserIrqchipUnit, AnIgnoredSipiIsCountedAndNoted) {
  UserIrqchip chip = Chip();
  chip.SendSipi(CpuNumber(1), Vector(8), counters);
  chip.SendSipi(CpuNumber(1), Vector(9), counters);
  EXPECT_EQ(counters.sipis_ignored, 1u);
  EXPECT_FALSE(mailboxes[1]->side_events().empty());
  EXPECT_EQ(mailboxes[1]->startup().Take().vector, Vector(8));
}

TEST_F(UserIrqchipUnit, ALostSipiIsTheOneThatWasAskedForAfterEachInit) {
  abi::FaultSpec fault;
  fault.kind = abi::Fault::kLostSipi1;
  fault.cpu = 1;
  UserIrqchip chip = Chip(fault);
  for (int i = 0; i < 2; ++i) {
    chip.SendInit(CpuNumber(1), counters);
    chip.SendSipi(CpuNumber(1), Vector(8), counters);
    chip.SendSipi(CpuNumber(1), Vector(9), counters);
    EXPECT_EQ(mailboxes[1]->startup().Take().vector, Vector(9));
  }
  EXPECT_EQ(counters.startup_dropped, 2u);
}

// --- Devices.

class DeviceMessages : public UserIrqchipUnit {
 protected:
  // 8-bit IDs, all APICs enabled.
  DeviceMessages() : chip(ids8, apic::ApicMode::kXApic, {}, Mailbox()) {
    for (uint32_t cpu = 0; cpu < ids8.size(); ++cpu) {
      apic::LocalApic local(ids8[cpu], cpu == 0);
      local.Reset(cpu == 0, apic::ApicMode::kXApic);
      static_cast<void>(
          local.WriteMmio(static_cast<uint32_t>(apic::Reg::kSvr), apic::kSvrEnable | 0xff, {}));
      chip.routing().Publish(CpuNumber(cpu), local.Routing());
    }
  }
  UserIrqchip::MailboxOf Mailbox() {
    return [this](CpuNumber cpu) -> CpuMailbox& { return *mailboxes[cpu.value]; };
  }

  const std::vector<ApicId> ids8 = {ApicId(0), ApicId(1), ApicId(2), ApicId(9)};
  UserIrqchip chip;
};

TEST_F(DeviceMessages, ALevelTriggeredOneIsTakenAsALevel) {
  apic::Icr icr = Command(apic::DeliveryMode::kFixed, 9, 0x41);
  icr.level_triggered = true;
  EXPECT_TRUE(chip.SendDevice(icr, counters));
  EXPECT_EQ(mailboxes[3]->TakeVectors()[1], 0u);
  EXPECT_EQ(mailboxes[3]->TakeLevels()[1], 0b10u);
  EXPECT_FALSE(mailboxes[1]->HasWork());
  EXPECT_EQ(counters.ipis, 1u);
}

// SDM vol 3A, 11.8.4: between CPUs all interrupts are edge-triggered.
TEST_F(DeviceMessages, ACpusCommandIsAnEdgeWhateverItSays) {
  apic::Icr icr = Command(apic::DeliveryMode::kFixed, 9, 0x41);
  icr.level_triggered = true;
  chip.Send(icr, CpuNumber(0), counters);
  EXPECT_EQ(mailboxes[3]->TakeVectors()[1], 0b10u);
  EXPECT_EQ(mailboxes[3]->TakeLevels()[1], 0u);
}

TEST_F(DeviceMessages, ExtIntAndNmiReachTheirCpu) {
  EXPECT_TRUE(chip.SendDevice(Command(apic::DeliveryMode::kExtInt, 1), counters));
  EXPECT_EQ(mailboxes[1]->TakeWork(), CpuMailbox::kExtInt);
  EXPECT_TRUE(chip.SendDevice(Command(apic::DeliveryMode::kNmi, 2), counters));
  EXPECT_EQ(mailboxes[2]->TakeWork(), CpuMailbox::kNmi);
}

TEST_F(DeviceMessages, ToNobodyAreCounted) {
  EXPECT_FALSE(chip.SendDevice(Command(apic::DeliveryMode::kFixed, 77, 0x41), counters));
  EXPECT_EQ(counters.undeliverable, 1u);
  EXPECT_EQ(counters.ipis, 0u);
}

TEST_F(DeviceMessages, ASoftwareDisabledApicTakesNone) {
  apic::LocalApic local(ids8[3], false);
  chip.routing().Publish(CpuNumber(3), local.Routing());
  EXPECT_FALSE(chip.SendDevice(Command(apic::DeliveryMode::kFixed, 9, 0x41), counters));
  EXPECT_FALSE(mailboxes[3]->HasWork());
}

// --- Commands that table 11-3 does not have.

apic::Icr Invalid(apic::DeliveryMode mode, apic::Shorthand shorthand) {
  apic::Icr icr;
  icr.mode = mode;
  icr.shorthand = shorthand;
  icr.vector = Vector(0x41);
  return icr;
}

TEST_F(UserIrqchipUnit, InvalidCommandsDoNothingByDefault) {
  UserIrqchip chip = Chip();
  for (const auto mode : {apic::DeliveryMode::kInit, apic::DeliveryMode::kNmi}) {
    chip.Send(Invalid(mode, apic::Shorthand::kSelf), CpuNumber(0), counters);
    chip.Send(Invalid(mode, apic::Shorthand::kAllIncludingSelf), CpuNumber(0), counters);
  }
  for (const auto& mailbox : mailboxes) EXPECT_FALSE(mailbox->HasWork());
  EXPECT_EQ(counters.undeliverable, 4u);
}

TEST_F(UserIrqchipUnit, WithKvmsIcrAnInitToSelfArrives) {
  UserIrqchip chip = Chip({}, /*kvm_icr=*/true);
  chip.Send(Invalid(apic::DeliveryMode::kInit, apic::Shorthand::kSelf), CpuNumber(2), counters);
  EXPECT_TRUE(mailboxes[2]->startup().Pending());
  EXPECT_EQ(counters.inits, 1u);
  for (const size_t other : {0u, 1u, 3u}) EXPECT_FALSE(mailboxes[other]->HasWork()) << other;
}

TEST_F(UserIrqchipUnit, WithKvmsIcrAnNmiToAllReachesTheSenderToo) {
  UserIrqchip chip = Chip({}, /*kvm_icr=*/true);
  chip.Send(Invalid(apic::DeliveryMode::kNmi, apic::Shorthand::kAllIncludingSelf), CpuNumber(1),
            counters);
  for (const auto& mailbox : mailboxes) EXPECT_EQ(mailbox->TakeNmis(), 1u);
  EXPECT_EQ(counters.ipis, 4u);
}

// INIT level de-assert, ExtINT and the reserved mode: KVM drops them as well.
TEST_F(UserIrqchipUnit, WithKvmsIcrWhatKvmDropsIsDropped) {
  UserIrqchip chip = Chip({}, /*kvm_icr=*/true);
  apic::Icr de_assert = Invalid(apic::DeliveryMode::kInit, apic::Shorthand::kAllIncludingSelf);
  de_assert.level_triggered = true;
  de_assert.assert_level = false;
  chip.Send(de_assert, CpuNumber(0), counters);
  for (const auto mode : {apic::DeliveryMode::kExtInt, apic::DeliveryMode::kReserved3}) {
    chip.Send(Invalid(mode, apic::Shorthand::kSelf), CpuNumber(0), counters);
    chip.Send(Invalid(mode, apic::Shorthand::kAllIncludingSelf), CpuNumber(0), counters);
    chip.Send(Invalid(mode, apic::Shorthand::kNone), CpuNumber(0), counters);
  }
  for (const auto& mailbox : mailboxes) EXPECT_FALSE(mailbox->HasWork());
  EXPECT_EQ(counters.undeliverable, 7u);
}

}  // namespace
}  // namespace sipi
