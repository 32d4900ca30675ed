#include "vmm/report/span.h"

#include <gtest/gtest.h>

namespace sipi {
namespace {

std::string Text(const std::vector<Span>& spans) {
  std::string text;
  for (const Span& span : spans) {
    text += span.name + "[" + std::to_string(span.begin_ns) + "," + std::to_string(span.end_ns) +
            "]" + (span.part > 0 ? "#" + std::to_string(span.part) : "") + " ";
  }
  return text;
}

Span Make(int64_t begin, int64_t end, const char* name) {
  return {.begin_ns = begin, .end_ns = end, .name = name};
}

TEST(NestSpans, LeavesSpansThatNestOrLieApart) {
  EXPECT_EQ(Text(NestSpans({Make(20, 30, "c"), Make(0, 10, "a"), Make(2, 5, "b")})),
            "a[0,10] b[2,5] c[20,30] ");
}

TEST(NestSpans, NeighboursThatTouchAreNotCut) {
  EXPECT_EQ(Text(NestSpans({Make(0, 10, "a"), Make(10, 20, "b")})), "a[0,10] b[10,20] ");
}

TEST(NestSpans, CutsTheLaterOfTwoThatCross) {
  EXPECT_EQ(Text(NestSpans({Make(0, 10, "a"), Make(5, 15, "b")})), "a[0,10] b[5,10]#1 b[10,15]#2 ");
}

TEST(NestSpans, CutsThroughEveryLevelThatIsCrossed) {
  EXPECT_EQ(Text(NestSpans({Make(0, 10, "a"), Make(2, 6, "b"), Make(4, 12, "c")})),
            "a[0,10] b[2,6] c[4,6]#1 c[6,10]#2 c[10,12]#3 ");
}

TEST(NestSpans, PutsTheLongerOfTwoThatBeginTogetherOutside) {
  EXPECT_EQ(Text(NestSpans({Make(0, 3, "a"), Make(0, 9, "b")})), "b[0,9] a[0,3] ");
}

TEST(NestSpans, KeepsSpansOfNoLength) {
  EXPECT_EQ(Text(NestSpans({Make(0, 5, "a"), Make(5, 5, "b"), Make(5, 8, "c")})),
            "a[0,5] c[5,8] b[5,5] ");
}

TEST(NestSpans, OnlyTheLastPartOfACutSpanIsUnfinished) {
  Span open = Make(5, 15, "b");
  open.finished = false;
  const std::vector<Span> spans = NestSpans({Make(0, 10, "a"), open});
  EXPECT_TRUE(spans[1].finished);
  EXPECT_FALSE(spans[2].finished);
}

}  // namespace
}  // namespace sipi
