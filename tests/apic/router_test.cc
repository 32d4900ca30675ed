// Destination matching (cases A4, A6, A9, A10, A14).
#include "apic/model/router.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace sipi::apic {
namespace {

using Targets = std::vector<uint32_t>;

std::vector<ApicId> DenseIds(uint32_t count) {
  std::vector<ApicId> ids;
  for (uint32_t i = 0; i < count; ++i) ids.push_back(ApicId(i));
  return ids;
}

RoutingState XApicState(uint8_t logical_id = 0, uint8_t dfr_model = 0xf) {
  RoutingState state;
  state.mode = ApicMode::kXApic;
  state.software_enabled = true;
  state.ldr = uint32_t{logical_id} << 24;
  state.dfr_model = dfr_model;
  return state;
}

RoutingState X2ApicState(ApicId id) {
  RoutingState state;
  state.mode = ApicMode::kX2Apic;
  state.software_enabled = true;
  state.ldr = X2ApicLogicalId(id);
  return state;
}

// `count` CPUs with IDs 0, 1, 2 ..., all in xAPIC mode, flat, with logical IDs 1 << (cpu & 7).
RoutingTable XApicMachine(uint32_t count) {
  RoutingTable table(DenseIds(count));
  for (uint32_t i = 0; i < count; ++i) {
    table.Publish(CpuNumber(i), XApicState(static_cast<uint8_t>(1u << (i & 7))));
  }
  return table;
}

RoutingTable X2ApicMachine(const std::vector<ApicId>& ids) {
  RoutingTable table(ids);
  for (uint32_t i = 0; i < table.size(); ++i) table.Publish(CpuNumber(i), X2ApicState(ids[i]));
  return table;
}

Targets TargetsOf(const RoutingTable& table, const Icr& icr, uint32_t sender = 0) {
  Targets targets;
  table.ForEachTarget(icr, CpuNumber(sender), [&](CpuNumber cpu) { targets.push_back(cpu.value); });
  std::sort(targets.begin(), targets.end());
  return targets;
}

Icr Message(DeliveryMode mode, Shorthand shorthand, uint32_t dest = 0) {
  Icr icr;
  icr.vector = Vector(0x30);
  icr.mode = mode;
  icr.shorthand = shorthand;
  icr.dest = dest;
  return icr;
}

Icr Physical(uint32_t dest) { return Message(DeliveryMode::kFixed, Shorthand::kNone, dest); }

Icr Logical(uint32_t dest) {
  Icr icr = Physical(dest);
  icr.logical = true;
  return icr;
}

TEST(RouterTest, PhysicalHitsTheCpuWithThatId) {
  const RoutingTable table = X2ApicMachine({ApicId(4095), ApicId(0), ApicId(254), ApicId(256)});
  EXPECT_EQ(TargetsOf(table, Physical(4095)), Targets{0});
  EXPECT_EQ(TargetsOf(table, Physical(256)), Targets{3});
  EXPECT_EQ(TargetsOf(table, Physical(0)), Targets{1});
}

// 11.4.6, where the xAPIC ID is writable: whoever has the ID now is hit, and nobody by the old one.
TEST(RouterTest, AWrittenIdTakesThePlaceOfTheCpusOwn) {
  RoutingTable table = XApicMachine(4);
  RoutingState renamed = XApicState(1u << 1);
  renamed.has_written_id = true;
  renamed.written_id = 3;
  table.Publish(CpuNumber(1), renamed);
  EXPECT_EQ(TargetsOf(table, Physical(3)), (Targets{1, 3}));
  EXPECT_EQ(TargetsOf(table, Physical(1)), Targets{});
  EXPECT_EQ(TargetsOf(table, Physical(2)), Targets{2});
  renamed.priority = 0x40;
  table.Publish(CpuNumber(1), renamed);
  EXPECT_EQ(TargetsOf(table, Physical(3)), (Targets{1, 3})) << "published once more";
  table.Publish(CpuNumber(1), XApicState(1u << 1));
  EXPECT_EQ(TargetsOf(table, Physical(3)), Targets{3});
  EXPECT_EQ(TargetsOf(table, Physical(1)), Targets{1});
}

TEST(RouterTest, UnusedIdHitsNobody) {
  const RoutingTable table = X2ApicMachine({ApicId(0), ApicId(2), ApicId(4)});
  EXPECT_EQ(TargetsOf(table, Physical(3)), Targets{});
}

TEST(RouterTest, EveryShorthandIgnoresTheDestination) {
  const RoutingTable table = X2ApicMachine(DenseIds(4));
  constexpr uint32_t kRubbish = 0xdeadbeef;
  const DeliveryMode fixed = DeliveryMode::kFixed;
  EXPECT_EQ(TargetsOf(table, Message(fixed, Shorthand::kSelf, kRubbish), 2), Targets{2});
  EXPECT_EQ(TargetsOf(table, Message(fixed, Shorthand::kAllIncludingSelf, kRubbish), 2),
            (Targets{0, 1, 2, 3}));
  EXPECT_EQ(TargetsOf(table, Message(fixed, Shorthand::kAllExcludingSelf, kRubbish), 2),
            (Targets{0, 1, 3}));
}

TEST(RouterTest, FFBroadcastsFromXApicMode) {
  EXPECT_EQ(TargetsOf(XApicMachine(3), Physical(0xff)), (Targets{0, 1, 2}));
}

TEST(RouterTest, FFIsAnOrdinaryIdInX2ApicMode) {
  EXPECT_EQ(TargetsOf(X2ApicMachine({ApicId(0), ApicId(1), ApicId(255)}), Physical(0xff)),
            Targets{2});
  EXPECT_EQ(TargetsOf(X2ApicMachine({ApicId(0), ApicId(1)}), Physical(0xff)), Targets{});
}

TEST(RouterTest, AllOnesBroadcastsFromX2ApicMode) {
  const RoutingTable table = X2ApicMachine({ApicId(0), ApicId(1), ApicId(4095)});
  EXPECT_EQ(TargetsOf(table, Physical(0xffffffff)), (Targets{0, 1, 2}));
  EXPECT_EQ(TargetsOf(table, Logical(0xffffffff)), (Targets{0, 1, 2}));
}

TEST(RouterTest, LogicalFFReachesAnXApicCpuWithoutALogicalId) {
  RoutingTable table = XApicMachine(2);
  table.Publish(CpuNumber(1), XApicState(0));  // as INIT leaves it
  EXPECT_EQ(TargetsOf(table, Logical(0xff)), (Targets{0, 1}));
}

TEST(RouterTest, AllButSelfInitAndSipiHit63Of64) {
  const RoutingTable table = XApicMachine(64);
  for (const DeliveryMode mode : {DeliveryMode::kInit, DeliveryMode::kStartUp}) {
    const Targets targets = TargetsOf(table, Message(mode, Shorthand::kAllExcludingSelf), 17);
    EXPECT_EQ(targets.size(), 63u);
    EXPECT_EQ(std::count(targets.begin(), targets.end(), 17u), 0);
  }
}

TEST(RouterTest, OnlyFixedMayGoToSelfOrAllIncludingSelf) {
  const RoutingTable table = X2ApicMachine(DenseIds(4));
  for (const DeliveryMode mode :
       {DeliveryMode::kLowestPriority, DeliveryMode::kSmi, DeliveryMode::kNmi, DeliveryMode::kInit,
        DeliveryMode::kStartUp}) {
    EXPECT_EQ(TargetsOf(table, Message(mode, Shorthand::kSelf)), Targets{});
    EXPECT_EQ(TargetsOf(table, Message(mode, Shorthand::kAllIncludingSelf)), Targets{});
  }
}

TEST(RouterTest, InitReachesTheBsp) {
  const RoutingTable table = X2ApicMachine(DenseIds(4));
  EXPECT_EQ(TargetsOf(table, Message(DeliveryMode::kInit, Shorthand::kNone, 0), 3), Targets{0});
}

TEST(RouterTest, OnlyInitLevelDeassertDoesNothing) {
  const RoutingTable table = X2ApicMachine(DenseIds(2));
  for (const DeliveryMode mode :
       {DeliveryMode::kFixed, DeliveryMode::kInit, DeliveryMode::kStartUp}) {
    for (const bool level_triggered : {false, true}) {
      for (const bool assert_level : {false, true}) {
        Icr icr = Message(mode, Shorthand::kNone, 1);
        icr.level_triggered = level_triggered;
        icr.assert_level = assert_level;
        const bool deassert = mode == DeliveryMode::kInit && level_triggered && !assert_level;
        EXPECT_EQ(TargetsOf(table, icr), deassert ? Targets{} : Targets{1})
            << static_cast<int>(mode) << level_triggered << assert_level;
      }
    }
  }
}

TEST(RouterTest, LinuxInitSequenceGivesOneInitAndTwoSipis) {
  const RoutingTable table = XApicMachine(2);
  // wakeup_secondary_cpu_via_init: assert, de-assert, SIPI, SIPI.
  EXPECT_EQ(TargetsOf(table, Icr::FromXApic(0x01000000, 0xc500)), Targets{1});
  EXPECT_EQ(TargetsOf(table, Icr::FromXApic(0x01000000, 0x8500)), Targets{});
  EXPECT_EQ(TargetsOf(table, Icr::FromXApic(0x01000000, 0x0608)), Targets{1});
}

TEST(RouterTest, ReservedDeliveryModesHitNobody) {
  const RoutingTable table = X2ApicMachine(DenseIds(2));
  EXPECT_EQ(TargetsOf(table, Message(DeliveryMode::kReserved3, Shorthand::kNone, 1)), Targets{});
  EXPECT_EQ(TargetsOf(table, Message(DeliveryMode::kExtInt, Shorthand::kNone, 1)), Targets{});
}

TEST(RouterTest, X2ApicClusterHitsExactlyTheMaskedIds) {
  const RoutingTable table = X2ApicMachine(DenseIds(48));
  EXPECT_EQ(TargetsOf(table, Logical(0x00028001)), (Targets{32, 47}));
}

TEST(RouterTest, X2ApicClusterSkipsACpuStillInXApicMode) {
  RoutingTable table = X2ApicMachine(DenseIds(48));
  table.Publish(CpuNumber(47), XApicState(0x01));
  table.Publish(CpuNumber(5), XApicState(0x01));  // its logical ID overlaps the mask's low byte
  EXPECT_EQ(TargetsOf(table, Logical(0x00028001)), Targets{32});
}

TEST(RouterTest, XApicFlatMatchesAnySharedBit) {
  EXPECT_EQ(TargetsOf(XApicMachine(8), Logical(0x81)), (Targets{0, 7}));
}

TEST(RouterTest, XApicClusterMatchesClusterAndBit) {
  RoutingTable table(DenseIds(4));
  table.Publish(CpuNumber(0), XApicState(0x11, 0));
  table.Publish(CpuNumber(1), XApicState(0x12, 0));
  table.Publish(CpuNumber(2), XApicState(0x21, 0));
  table.Publish(CpuNumber(3), XApicState(0x18, 0));
  EXPECT_EQ(TargetsOf(table, Logical(0x19)), (Targets{0, 3}));
}

TEST(RouterTest, ReservedDfrModelMatchesNobody) {
  RoutingTable table(DenseIds(2));
  table.Publish(CpuNumber(0), XApicState(0x01));
  table.Publish(CpuNumber(1), XApicState(0x02, 0x7));
  EXPECT_EQ(TargetsOf(table, Logical(0x03)), Targets{0});
}

TEST(RouterTest, LogicalDestinationZeroHitsNobody) {
  EXPECT_EQ(TargetsOf(XApicMachine(8), Logical(0)), Targets{});
  EXPECT_EQ(TargetsOf(X2ApicMachine(DenseIds(8)), Logical(0x00010000)), Targets{});
}

TEST(RouterTest, WideIdStillInXApicModeCanBeStartedByItsWholeId) {
  RoutingTable table(std::vector<ApicId>{ApicId(0), ApicId(44), ApicId(300)});
  table.Publish(CpuNumber(0), X2ApicState(ApicId(0)));
  table.Publish(CpuNumber(1), X2ApicState(ApicId(44)));
  table.Publish(CpuNumber(2), XApicState());
  EXPECT_EQ(TargetsOf(table, Message(DeliveryMode::kInit, Shorthand::kNone, 300)), Targets{2});
  EXPECT_EQ(TargetsOf(table, Message(DeliveryMode::kInit, Shorthand::kNone, 44)), Targets{1});
}

TEST(RouterTest, SoftwareDisabledCpuGetsInitSipiAndNmiOnly) {
  RoutingTable table = XApicMachine(2);
  RoutingState state = XApicState(2);
  state.software_enabled = false;
  table.Publish(CpuNumber(1), state);
  EXPECT_EQ(TargetsOf(table, Physical(1)), Targets{});
  for (const DeliveryMode mode :
       {DeliveryMode::kInit, DeliveryMode::kStartUp, DeliveryMode::kNmi}) {
    EXPECT_EQ(TargetsOf(table, Message(mode, Shorthand::kNone, 1)), Targets{1});
  }
}

TEST(RouterTest, DisabledCpuGetsAndSendsNothing) {
  RoutingTable table = XApicMachine(3);
  table.Publish(CpuNumber(1), RoutingState{});
  EXPECT_EQ(TargetsOf(table, Message(DeliveryMode::kInit, Shorthand::kNone, 1)), Targets{});
  EXPECT_EQ(TargetsOf(table, Message(DeliveryMode::kInit, Shorthand::kAllExcludingSelf)),
            Targets{2});
  EXPECT_EQ(TargetsOf(table, Physical(2), 1), Targets{});
}

TEST(RouterTest, LowestPriorityPicksTheLeastPriority) {
  RoutingTable table = XApicMachine(4);
  for (uint32_t cpu = 0; cpu < 4; ++cpu) {
    RoutingState state = table.State(CpuNumber(cpu));
    state.priority = cpu == 2 ? 0x10 : 0x40;
    table.Publish(CpuNumber(cpu), state);
  }
  Icr icr = Logical(0x0f);
  icr.mode = DeliveryMode::kLowestPriority;
  EXPECT_EQ(TargetsOf(table, icr), Targets{2});
}

TEST(RouterTest, LowestPrioritySpreadsVectorsOverEquals) {
  const RoutingTable table = XApicMachine(4);
  Targets picked;
  for (uint8_t vector = 0x30; vector < 0x34; ++vector) {
    Icr icr = Logical(0x0f);
    icr.mode = DeliveryMode::kLowestPriority;
    icr.vector = Vector(vector);
    const Targets one = TargetsOf(table, icr);
    ASSERT_EQ(one.size(), 1u);
    picked.push_back(one[0]);
  }
  EXPECT_EQ(picked, (Targets{0, 1, 2, 3}));
}

TEST(RouterTest, DeviceMessageFFBroadcastsToX2ApicCpusToo) {
  const RoutingTable table = X2ApicMachine(DenseIds(3));
  Targets targets;
  table.ForEachDeviceTarget(Physical(0xff), [&](CpuNumber cpu) { targets.push_back(cpu.value); });
  EXPECT_EQ(targets, (Targets{0, 1, 2}));
}

TEST(RouterTest, DeviceMayDeliverExtInt) {
  const RoutingTable table = XApicMachine(2);
  Targets targets;
  table.ForEachDeviceTarget(Message(DeliveryMode::kExtInt, Shorthand::kNone, 1),
                            [&](CpuNumber cpu) { targets.push_back(cpu.value); });
  EXPECT_EQ(targets, Targets{1});
}

// 11.11.2: delivery modes 3 and 6 are reserved.
TEST(RouterTest, DeviceMessageOfAReservedModeHitsNobody) {
  const RoutingTable table = XApicMachine(2);
  for (const DeliveryMode mode : {DeliveryMode::kReserved3, DeliveryMode::kStartUp}) {
    table.ForEachDeviceTarget(Message(mode, Shorthand::kNone, 1),
                              [&](CpuNumber) { ADD_FAILURE() << static_cast<int>(mode); });
  }
}

TEST(RouterTest, SparseIdsAreFoundInALargeMachine) {
  std::vector<ApicId> ids;
  for (uint32_t i = 0; i < 4096; ++i) ids.push_back(ApicId(i * 37 + 5));
  const RoutingTable table(ids);
  for (uint32_t i = 0; i < 4096; ++i) EXPECT_EQ(table.Find(ids[i]), CpuNumber(i));
  EXPECT_EQ(table.Find(ApicId(6)), std::nullopt);
}

TEST(RouterTest, DuplicateAndBroadcastIdsAreInvalid) {
  EXPECT_TRUE(RoutingTable::IdsAreValid(DenseIds(8)));
  EXPECT_FALSE(RoutingTable::IdsAreValid(std::vector<ApicId>{ApicId(3), ApicId(1), ApicId(3)}));
  EXPECT_FALSE(RoutingTable::IdsAreValid(std::vector<ApicId>{ApicId(0xffffffff)}));
  EXPECT_FALSE(RoutingTable::IdsAreValid({})) << "a machine without CPUs";
}

TEST(RouterTest, RoutingStateSurvivesPacking) {
  RoutingState state;
  state.mode = ApicMode::kX2Apic;
  state.software_enabled = true;
  state.priority = 0xf7;
  state.dfr_model = 0x3;
  state.ldr = 0xfedcba98;
  EXPECT_EQ(RoutingState::Unpack(state.Pack()), state);
}

// 11.4.7.2: INIT, NMI, SMI and SIPI are what a software-disabled APIC answers; ExtINT is not.
TEST(RouterTest, SoftwareDisabledCpuGetsNoExtIntOfADevice) {
  RoutingTable table = XApicMachine(2);
  RoutingState state = XApicState(2);
  state.software_enabled = false;
  table.Publish(CpuNumber(1), state);
  Targets targets;
  table.ForEachDeviceTarget(Message(DeliveryMode::kExtInt, Shorthand::kNone, 1),
                            [&](CpuNumber cpu) { targets.push_back(cpu.value); });
  EXPECT_EQ(targets, Targets{});
}

// 11.6.1: the IPI "may be redirected back to the issuing processor"; here it never is.
TEST(RouterTest, LowestPriorityToAllButSelfNeverComesBack) {
  const RoutingTable table = XApicMachine(4);
  for (uint8_t vector = 0x30; vector < 0x38; ++vector) {
    Icr icr = Message(DeliveryMode::kLowestPriority, Shorthand::kAllExcludingSelf);
    icr.vector = Vector(vector);
    const Targets one = TargetsOf(table, icr, 2);
    ASSERT_EQ(one.size(), 1u);
    EXPECT_NE(one[0], 2u);
  }
}

TEST(RouterTest, LowestPriorityToOnePhysicalIdIsAsFixed) {
  const RoutingTable table = X2ApicMachine(DenseIds(4));
  EXPECT_EQ(TargetsOf(table, Message(DeliveryMode::kLowestPriority, Shorthand::kNone, 3)),
            Targets{3});
}

// 11.6.2.2, cluster model: 15 clusters of four; another cluster's bits do not count.
TEST(RouterTest, XApicClusterModelKeepsFifteenClustersApart) {
  RoutingTable table(DenseIds(60));
  for (uint32_t cpu = 0; cpu < 60; ++cpu) {
    const uint32_t logical = (cpu / 4) << 4 | 1u << (cpu % 4);
    table.Publish(CpuNumber(cpu), XApicState(static_cast<uint8_t>(logical), 0));
  }
  for (uint32_t cluster = 0; cluster < 15; ++cluster) {
    EXPECT_EQ(TargetsOf(table, Logical(cluster << 4 | 0xa)),
              (Targets{cluster * 4 + 1, cluster * 4 + 3}));
  }
  EXPECT_EQ(TargetsOf(table, Logical(0xff)).size(), 60u);
}

// 11.12.10: FFFFFFFFH in logical mode; a lower one of all ones is cluster FFFFH's.
TEST(RouterTest, X2ApicLogicalFFIsNoBroadcast) {
  const RoutingTable table = X2ApicMachine(DenseIds(20));
  EXPECT_EQ(TargetsOf(table, Logical(0xff)), (Targets{0, 1, 2, 3, 4, 5, 6, 7}));
}

// 11.12.10.2: the wider part of the ID is the cluster.
TEST(RouterTest, X2ApicClusterTakesSixteenBitsOfTheId) {
  const RoutingTable table = X2ApicMachine({ApicId(0), ApicId(0xabcd3), ApicId(0xabcd5)});
  EXPECT_EQ(TargetsOf(table, Logical(0xabcd0020)), Targets{2});
}

}  // namespace
}  // namespace sipi::apic
