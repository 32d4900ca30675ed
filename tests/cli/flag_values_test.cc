#include "vmm/cli/flag_values.h"

#include <gtest/gtest.h>

namespace sipi {
namespace {

std::string ErrorOf(const absl::Status& status) { return std::string(status.message()); }

TEST(ParseNumber, ReadsDecimalAndHexadecimal) {
  EXPECT_EQ(ParseNumber("--x", "1024", 0, 4096).value(), 1024u);
  EXPECT_EQ(ParseNumber("--x", "0x10", 0, 4096).value(), 16u);
  EXPECT_EQ(ParseNumber("--x", "18446744073709551615", 0, UINT64_MAX).value(), UINT64_MAX);
}

TEST(ParseNumber, RefusesWhatIsNoNumber) {
  for (const char* text : {"", "abc", "-1", "+1", " 1", "1 ", "1.5", "0x", "12k", "1e3"}) {
    const auto number = ParseNumber("--cpus", text, 1, 8);
    ASSERT_FALSE(number.ok()) << text;
    EXPECT_EQ(ErrorOf(number.status()),
              "--cpus: '" + std::string(text) + "' is not a number; give one from 1 to 8");
  }
}

TEST(ParseNumber, NamesTheLimitThatIsPassed) {
  EXPECT_EQ(ErrorOf(ParseNumber("--cpus", "0", 1, 8).status()),
            "--cpus: '0' is too small; the least is 1");
  EXPECT_EQ(ErrorOf(ParseNumber("--cpus", "9", 1, 8).status()),
            "--cpus: '9' is too large; the limit is 8");
  EXPECT_EQ(ErrorOf(ParseNumber("--cpus", "99999999999999999999999", 1, 8).status()),
            "--cpus: '99999999999999999999999' is too large; the limit is 8");
}

TEST(ParseBytes, KnowsBinarySuffixes) {
  EXPECT_EQ(ParseBytes("--memory", "4096").value(), 4096u);
  EXPECT_EQ(ParseBytes("--memory", "512M").value(), 512u << 20);
  EXPECT_EQ(ParseBytes("--memory", "2g").value(), uint64_t{2} << 30);
}

TEST(ParseBytes, RefusesOverflowAndNonsense) {
  EXPECT_FALSE(ParseBytes("--memory", "99999999999999G").ok());
  EXPECT_FALSE(ParseBytes("--memory", "M").ok());
  EXPECT_FALSE(ParseBytes("--memory", "").ok());
  EXPECT_FALSE(ParseBytes("--memory", "-1M").ok());
}

TEST(ParseNumberList, RefusesRepeatsAndHoles) {
  EXPECT_EQ(ParseNumberList("--firmware-lies", "3,1", 1, 7).value(), (std::vector<uint32_t>{3, 1}));
  EXPECT_EQ(ErrorOf(ParseNumberList("--firmware-lies", "3,3", 1, 7).status()),
            "--firmware-lies: 3 is given twice; name it once");
  EXPECT_FALSE(ParseNumberList("--firmware-lies", "3,,1", 1, 7).ok());
  EXPECT_FALSE(ParseNumberList("--firmware-lies", "0", 1, 7).ok());
}

TEST(ParseChoice, NamesTheChoicesAndTheNearest) {
  const Choices<int> choices = {{"user", 0}, {"split", 1}, {"kernel", 2}};
  EXPECT_EQ(ParseChoice<int>("--irqchip", "split", choices).value(), 1);
  EXPECT_EQ(ErrorOf(ParseChoice<int>("--irqchip", "kernal", choices).status()),
            "--irqchip: there is no 'kernal'; did you mean 'kernel'? "
            "It takes user, split or kernel");
  EXPECT_EQ(ErrorOf(ParseChoice<int>("--irqchip", "zzz", choices).status()),
            "--irqchip: there is no 'zzz'; it takes user, split or kernel");
}

TEST(Quoted, StaysOnOneShortLine) {
  EXPECT_EQ(Quoted("a\nb\x1b[0m"), "'a?b?[0m'");
  EXPECT_LT(Quoted(std::string(10'000, 'x')).size(), 80u);
}

}  // namespace
}  // namespace sipi
