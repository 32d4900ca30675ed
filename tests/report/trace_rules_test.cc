// The checker itself: it must see what is wrong.
#include "tests/support/trace_rules.h"

#include <gtest/gtest.h>

namespace sipi {
namespace {

// A trace with names for process 1 and thread 1, and these events.
std::string Trace(const std::string& events) {
  return R"({"displayTimeUnit":"ns","traceEvents":[
    {"name":"process_name","ph":"M","ts":0,"pid":1,"tid":1,"args":{"name":"p"}},
    {"name":"thread_name","ph":"M","ts":0,"pid":1,"tid":1,"args":{"name":"t"}})" +
         events + "]}";
}

std::string FirstViolation(const std::string& text) {
  const TraceContents contents = CheckTrace(text);
  return contents.violations.empty() ? "" : contents.violations[0];
}

TEST(TraceRules, TakeAGoodTrace) {
  const TraceContents contents = CheckTrace(Trace(
      R"(,{"name":"a","ph":"X","ts":1.5,"dur":2,"pid":1,"tid":1},
         {"name":"b","ph":"X","ts":2,"dur":1.5,"pid":1,"tid":1},
         {"name":"c","ph":"i","s":"t","ts":9,"pid":1,"tid":1})"));
  EXPECT_TRUE(contents.violations.empty()) << contents.violations[0];
  EXPECT_EQ(contents.track_names.at(1), "t");
  EXPECT_EQ(contents.spans.at(1).size(), 2u);
  EXPECT_EQ(contents.instants.at(1).at(0), "c");
}

TEST(TraceRules, SeeWhatIsWrong) {
  EXPECT_EQ(FirstViolation("{"), "trace: is no valid JSON");
  EXPECT_EQ(FirstViolation("{}"), "trace: has no array traceEvents");
  EXPECT_EQ(FirstViolation(R"({"traceEvents":[]})"), "trace: displayTimeUnit must be ms or ns");
  EXPECT_EQ(FirstViolation(Trace(R"(,{"name":"a","ph":"X","ts":1,"pid":1,"tid":1})")),
            "event 2: X without dur");
  EXPECT_EQ(FirstViolation(Trace(R"(,{"name":"a","ph":"X","ts":1,"dur":-1,"pid":1,"tid":1})")),
            "event 2: dur is negative");
  EXPECT_EQ(FirstViolation(Trace(R"(,{"name":"a","ph":"X","dur":1,"pid":1,"tid":1})")),
            "event 2: ts must be a number");
  EXPECT_EQ(FirstViolation(Trace(R"(,{"name":"a","ph":"B","ts":1,"pid":1,"tid":1})")),
            "tid 1: B without E");
  EXPECT_EQ(FirstViolation(Trace(R"(,{"name":"a","ph":"E","ts":1,"pid":1,"tid":1})")),
            "event 2: E without B");
  EXPECT_EQ(FirstViolation(Trace(R"(,{"name":"a","ph":"i","s":"q","ts":1,"pid":1,"tid":1})")),
            "event 2: scope of an instant must be g, p or t");
  EXPECT_EQ(FirstViolation(Trace(R"(,{"name":"a","ph":"i","ts":1,"pid":1,"tid":4})")),
            "tid 4: has no thread_name");
  EXPECT_EQ(FirstViolation(Trace(R"(,{"name":"a","ph":"X","ts":0,"dur":5,"pid":1,"tid":1},
                                     {"name":"b","ph":"X","ts":3,"dur":5,"pid":1,"tid":1})")),
            "tid 1: b crosses the end of a");
}

}  // namespace
}  // namespace sipi
