#include "vmm/cli/fault_flag.h"

#include <gtest/gtest.h>

#include "guest/abi/cpuhp_state.h"

namespace sipi {
namespace {

std::string ErrorOf(const std::string& text, uint32_t cpus) {
  return std::string(ParseFault(text, cpus).status().message());
}

TEST(ParseFault, ReadsKindAndCpu) {
  const abi::FaultSpec fault = ParseFault("triple-fault@37", 64).value();
  EXPECT_EQ(fault.kind, abi::Fault::kTripleFault);
  EXPECT_EQ(fault.cpu, 37u);
}

TEST(ParseFault, LateHasMilliseconds) {
  const abi::FaultSpec fault = ParseFault("late@5:11000", 8).value();
  EXPECT_EQ(fault.kind, abi::Fault::kLate);
  EXPECT_EQ(fault.value, 11'000u);
  EXPECT_EQ(ErrorOf("late@5", 8), "--fault: late needs a value; write late@5:MILLISECONDS");
}

TEST(ParseFault, TscAheadHasTicks) {
  EXPECT_EQ(ParseFault("tsc-ahead@2:50000", 4).value().value, 50'000u);
  EXPECT_EQ(ErrorOf("tsc-ahead@2", 4), "--fault: tsc-ahead needs a value; write tsc-ahead@2:TICKS");
  EXPECT_FALSE(ParseFault("tsc-ahead@2:0", 4).ok());
  EXPECT_FALSE(ParseFault("tsc-ahead@2:1000000001", 4).ok());
}

TEST(ParseFault, FailStepTakesTheStatesNameOrNumber) {
  constexpr auto kTeardown = static_cast<uint64_t>(abi::CpuhpState::kTeardownCpu);
  EXPECT_EQ(ParseFault("fail-step@3:cpu:teardown", 8).value().value, kTeardown);
  EXPECT_EQ(ParseFault("fail-step@3:142", 8).value().value, kTeardown);
  EXPECT_FALSE(ParseFault("fail-step@3:85000", 8).ok());
  EXPECT_NE(ErrorOf("fail-step@3:ap:onlin", 8).find("did you mean 'ap:online'?"),
            std::string::npos);
}

// The kernel would not have them fail, and the run would be one without a fault.
TEST(ParseFault, RefusesAStepThatCannotFail) {
  for (const char* state : {"85", "86", "92", "136", "141", "ap:online", "143"}) {
    EXPECT_NE(ErrorOf(std::string("fail-step@1:") + state, 8).find("cannot fail"),
              std::string::npos)
        << state;
  }
  for (const char* state : {"1", "84", "147", "234"}) {
    EXPECT_TRUE(ParseFault(std::string("fail-step@1:") + state, 8).ok()) << state;
  }
}

TEST(ParseFault, HaltAllNeedsNoCpu) {
  EXPECT_EQ(ParseFault("halt-all", 4).value().kind, abi::Fault::kHaltAll);
  EXPECT_EQ(ErrorOf("hang", 4), "--fault: 'hang' names no CPU; write hang@CPU");
}

TEST(ParseFault, FaultsOfStartUpNeedAnAp) {
  EXPECT_EQ(ErrorOf("no-start@0", 4), "--fault=no-start@CPU: '0' is too small; the least is 1");
  EXPECT_EQ(ErrorOf("no-start@4", 4), "--fault=no-start@CPU: '4' is too large; the limit is 3");
  EXPECT_EQ(ErrorOf("lost-sipi1@1", 1), "--fault: lost-sipi1 needs an AP; give --cpus=2 or more");
  EXPECT_EQ(ParseFault("triple-fault@0", 1).value().cpu, 0u);
}

TEST(ParseFault, SuggestsTheNearestKind) {
  EXPECT_NE(ErrorOf("tripel-fault@1", 4).find("did you mean 'triple-fault'?"), std::string::npos);
}

TEST(FaultNames, CoverEveryFaultOfTheAbi) { EXPECT_EQ(FaultNames().size(), 15u); }

}  // namespace
}  // namespace sipi
