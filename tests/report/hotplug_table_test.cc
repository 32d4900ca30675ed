// CPUs that go off and on, in the table and the file of `sipi run`, from records made by hand.
#include "vmm/report/hotplug_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/report/service_records.h"
#include "vmm/report/run_json.h"

namespace sipi {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

TEST(HotplugTable, CountsFailures) {
  EXPECT_EQ(HotplugTable(SerialRun()), "");
  EXPECT_TRUE(HotplugComplete(TortureRun()));
  RunRecord record = TortureRun();
  record.events.back().value = 3;
  EXPECT_FALSE(HotplugComplete(record));
  EXPECT_THAT(HotplugTable(record), HasSubstr("off          1"));
}

// Asked for at 1 ms, locked at 4, done at 10, unlocked at 11; two grace periods for the locks, one
// in the operation.
RunRecord LockedRun() {
  RecordBuilder run(2);
  run.Online(0).Online(1);
  run.At(1'000, 0, abi::TraceEvent::kHotplugAsked, 1, 0)
      .At(2'000, 0, abi::TraceEvent::kSyncEnd)
      .At(2'001, 0, abi::TraceEvent::kCpusWriteLock)
      .At(3'000, 0, abi::TraceEvent::kSyncEnd)
      .At(4'000, 0, abi::TraceEvent::kCpusWriteLocked)
      .At(4'000, 0, abi::TraceEvent::kHotplugBegin, 1, 0)
      .At(5'000, 1, abi::TraceEvent::kSyncEnd)
      .At(10'000, 0, abi::TraceEvent::kHotplugEnd, 1, 0)
      .At(11'000, 0, abi::TraceEvent::kCpusWriteUnlock)
      .At(12'000, 0, abi::TraceEvent::kSyncEnd);
  run.record().services = ServicesInfo();
  run.record().services->scenario = abi::Scenario::kHotplug;
  return run.Take();
}

TEST(HotplugTable, AnOperationLastsFromBeingAskedToGivingTheLocksBack) {
  EXPECT_THAT(HotplugTable(LockedRun()),
              HasSubstr("off          1          10000.0    10000.0  10000.0    3000.0             "
                        "3.00       0.00       2.00\n"));
  const json file = json::parse(RunJson(LockedRun()));
  ASSERT_EQ(file["hotplug"].size(), 1u);
  const json& operation = file["hotplug"][0];
  EXPECT_EQ(operation["direction"], "off");
  EXPECT_EQ(operation["begin_ns"], 1'000'000);
  EXPECT_EQ(operation["ns"], 10'000'000);
  EXPECT_EQ(operation["locks_ns"], 3'000'000);
  EXPECT_EQ(operation["grace_periods"]["normal"], 3);
  EXPECT_EQ(operation["locks_grace_periods"]["normal"], 2);
  EXPECT_FALSE(json::parse(RunJson(SerialRun())).contains("hotplug"));
}

TEST(HotplugTable, WhereEventsAreMissingNothingIsSaidToHaveFailed) {
  RunRecord record = LockedRun();
  record.events.erase(
      std::find_if(record.events.begin(), record.events.end(),
                   [](const Event& each) { return each.name == abi::TraceEvent::kHotplugEnd; }),
      record.events.end());
  EXPECT_FALSE(HotplugComplete(record));
  EXPECT_THAT(HotplugTable(record), HasSubstr("off          1       1"));
  record.lost_events = 3;
  EXPECT_FALSE(HotplugComplete(record)) << "nobody knows";
  EXPECT_THAT(HotplugTable(record), Not(HasSubstr("off          1       1")));
  EXPECT_THAT(HotplugTable(record), HasSubstr("events were lost"));
  RunRecord whole = LockedRun();
  EXPECT_TRUE(HotplugComplete(whole));
  whole.lost_events = 1;
  EXPECT_FALSE(HotplugComplete(whole));
}

}  // namespace
}  // namespace sipi
