#include "vmm/timeline/host_log.h"

#include <gtest/gtest.h>

namespace sipi {
namespace {

using abi::TraceEvent;

TEST(HostLog, KeepsEventsInOrderWithRisingTimes) {
  HostLog log(4);
  log.Emit(TraceEvent::kThreadStarted);
  log.Emit(TraceEvent::kIpiSent, 5, 0x4500);
  ASSERT_EQ(log.records().size(), 2u);
  EXPECT_EQ(log.records()[0].event, TraceEvent::kThreadStarted);
  EXPECT_EQ(log.records()[1].event, TraceEvent::kIpiSent);
  EXPECT_EQ(log.records()[1].target, 5);
  EXPECT_EQ(log.records()[1].value, 0x4500u);
  EXPECT_LE(log.records()[0].tsc, log.records()[1].tsc);
}

TEST(HostLog, CountsWhatDoesNotFitAndKeepsTheFirst) {
  HostLog log(2);
  for (uint32_t i = 0; i < 5; ++i) log.Emit(TraceEvent::kScenario, 0, i);
  EXPECT_EQ(log.lost(), 3u);
  ASSERT_EQ(log.records().size(), 2u);
  EXPECT_EQ(log.records()[1].value, 1u);
}

TEST(HostLog, OfNoCapacityLosesEverything) {
  HostLog log(0);
  log.Emit(TraceEvent::kRunEnd);
  EXPECT_TRUE(log.records().empty());
  EXPECT_EQ(log.lost(), 1u);
}

}  // namespace
}  // namespace sipi
