#include "vmm/timeline/event_info.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace sipi {
namespace {

using abi::TraceEvent;

TEST(EventInfo, NamesAreUniqueAndGoBothWays) {
  std::set<std::string> names;
  for (uint16_t i = 0; i < 512; ++i) {
    const auto event = static_cast<TraceEvent>(i);
    if (!IsEvent(event)) continue;
    EXPECT_TRUE(names.insert(abi::Name(event)).second) << abi::Name(event);
    EXPECT_EQ(EventByName(abi::Name(event)), event);
  }
  EXPECT_GE(names.size(), 48u);
}

TEST(EventInfo, NumbersWithoutANameAreNoEvents) {
  EXPECT_FALSE(IsEvent(TraceEvent::kNone));
  EXPECT_FALSE(IsEvent(TraceEvent::kHostFirst));
  EXPECT_FALSE(IsEvent(static_cast<TraceEvent>(0xffff)));
  EXPECT_FALSE(EventByName("?").has_value());
  EXPECT_FALSE(EventByName("none").has_value());
  EXPECT_FALSE(EventByName("").has_value());
}

TEST(EventInfo, IcrValuesAreSaidInWords) {
  EXPECT_EQ(DescribeValue(TraceEvent::kIcrWrite, 0x0608), "startup 0x08");
  EXPECT_EQ(DescribeValue(TraceEvent::kIcrWrite, 0xC0608), "startup 0x08 to all-but-self");
  EXPECT_EQ(DescribeValue(TraceEvent::kIcrWrite, 0xC500), "init 0x00");
  EXPECT_EQ(DescribeValue(TraceEvent::kIcrWrite, 0x8500), "init de-assert 0x00");
  EXPECT_EQ(DescribeValue(TraceEvent::kIpiSent, 0x400F0), "fixed 0xf0 to self");
}

TEST(EventInfo, StatesAndKindsAreSaidByName) {
  EXPECT_EQ(DescribeValue(TraceEvent::kCpuhpEnter, 82), "cpu:kick_ap");
  EXPECT_EQ(DescribeValue(TraceEvent::kTimeout, 1), "kicked");
  EXPECT_EQ(DescribeValue(TraceEvent::kImposedBegin, 3), "microcode");
  EXPECT_EQ(DescribeValue(TraceEvent::kVeto, 2), "no CPUID leaf 0xB");
  EXPECT_EQ(DescribeValue(TraceEvent::kSmpbootEnd, 64), "");
  EXPECT_EQ(DescribeValue(TraceEvent::kCpuhpEnter, 77), "?");
}

TEST(EventInfo, GracePeriodsAndApproachesAreSaidInWords) {
  EXPECT_EQ(DescribeValue(TraceEvent::kSyncEnd, 1), "expedited");
  EXPECT_EQ(DescribeValue(TraceEvent::kSmtBegin, 6), "wake-from-gp");
  EXPECT_STREQ(ValueKey(InfoOf(TraceEvent::kSyncEnd).value), "kind");
  EXPECT_TRUE(InfoOf(TraceEvent::kHotplugEnd).has_target);
  EXPECT_FALSE(InfoOf(TraceEvent::kGpEnd).has_target);
}

}  // namespace
}  // namespace sipi
