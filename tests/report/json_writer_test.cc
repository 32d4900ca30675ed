#include "vmm/report/json_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "nlohmann/json.hpp"

namespace sipi {
namespace {

std::string Quoted(std::string_view text) {
  JsonWriter json;
  json.String(text);
  return json.Take();
}

TEST(JsonWriter, PutsCommasAndLineBreaks) {
  JsonWriter json;
  json.BeginObject();
  json.Field("a", 1);
  json.Line();
  json.Key("b");
  json.BeginArray();
  json.Int(-2);
  json.Null();
  json.BeginObject();
  json.EndObject();
  json.EndArray();
  json.Field("c", true);
  json.EndObject();
  EXPECT_EQ(json.Take(), "{\"a\":1,\n\"b\":[-2,null,{}],\"c\":true}\n");
}

TEST(JsonWriter, EscapesWhatJsonReserves) {
  EXPECT_EQ(Quoted("a\"b\\c\n\t\r\x01"), "\"a\\\"b\\\\c\\n\\t\\r\\u0001\"\n");
  EXPECT_EQ(Quoted(std::string_view("\0", 1)), "\"\\u0000\"\n");
  EXPECT_EQ(Quoted("\x7f"), "\"\x7f\"\n");
}

TEST(JsonWriter, KeepsValidUtf8) {
  const std::string text = "\u00b5s \u20ac \U0001F600 \U0010FFFF";
  EXPECT_EQ(Quoted(text), '"' + text + "\"\n");
}

TEST(JsonWriter, ReplacesBytesThatAreNoUtf8) {
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(Quoted("a\xff"
                   "b"),
            "\"a" + bad + "b\"\n");
  EXPECT_EQ(Quoted("\xC0\x80"), '"' + bad + bad + "\"\n");                      // overlong NUL
  EXPECT_EQ(Quoted("\xED\xA0\x80"), '"' + bad + bad + bad + "\"\n");            // a surrogate
  EXPECT_EQ(Quoted("\xE2\x82"), '"' + bad + bad + "\"\n");                      // cut short
  EXPECT_EQ(Quoted("\xF4\x90\x80\x80"), '"' + bad + bad + bad + bad + "\"\n");  // above 10FFFF
}

TEST(JsonWriter, AnyBytesGiveTextThatAStrictParserTakes) {
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const std::string text = {static_cast<char>(first), static_cast<char>(second), 'x'};
      ASSERT_TRUE(nlohmann::json::accept(Quoted(text))) << first << " " << second;
    }
  }
}

TEST(JsonWriter, WritesNumbersExactly) {
  JsonWriter json;
  json.BeginArray();
  json.Int(INT64_MIN);
  json.UInt(UINT64_MAX);
  json.Microseconds(1'234'567);
  json.Microseconds(5);
  json.Microseconds(-1'050);
  json.Microseconds(INT64_MAX);
  json.Double(6.5);
  json.Double(std::nan(""));
  json.EndArray();
  EXPECT_EQ(json.Take(),
            "[-9223372036854775808,18446744073709551615,1234.567,0.005,-1.050,"
            "9223372036854775.807,6.5,null]\n");
}

}  // namespace
}  // namespace sipi
