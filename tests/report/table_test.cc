#include "vmm/report/table.h"

#include <gtest/gtest.h>

namespace sipi {
namespace {

TEST(TextTable, AlignsColumnsAndLeavesNoBlanksAtTheEnd) {
  TextTable table({{"name", Align::kLeft}, {"ms"}, {"", Align::kLeft}});
  table.AddRow({"a", "1.5", "x"});
  table.AddRow({"longer", "100.25"});
  EXPECT_EQ(table.Render(),
            "name        ms\n"
            "------  ------  -\n"
            "a          1.5  x\n"
            "longer  100.25\n");
}

TEST(TextTable, CountsCharactersNotBytes) {
  TextTable table({{"a", Align::kRight}, {"b", Align::kLeft}});
  table.AddRow({"\u00b5\u00b5", "x"});
  EXPECT_EQ(table.Render(), " a  b\n--  -\n\u00b5\u00b5  x\n");
}

TEST(Numbers, HaveTheUnitTheyAreNamedFor) {
  EXPECT_EQ(Milliseconds(12'345'600), "12.346");
  EXPECT_EQ(Milliseconds(0), "0.000");
  EXPECT_EQ(Milliseconds(std::nullopt), "-");
  EXPECT_EQ(Microseconds(12'345'678), "12345.7");
  EXPECT_EQ(Duration(850), "850 ns");
  EXPECT_EQ(Duration(12'340), "12.3 us");
  EXPECT_EQ(Duration(4'560'000), "4.56 ms");
  EXPECT_EQ(Duration(1'230'000'000), "1.23 s");
}

}  // namespace
}  // namespace sipi
