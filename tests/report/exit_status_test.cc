#include <gtest/gtest.h>

#include <csignal>

#include "vmm/timeline/outcome.h"
#include "vmm/timeline/run_record.h"

namespace sipi {
namespace {

int StatusOf(Outcome outcome, int signal = 0) {
  RunRecord record;
  record.outcome = outcome;
  record.signal = signal;
  return ExitStatus(record);
}

TEST(ExitStatus, IsTheDocumentedNumberForEachOutcome) {
  EXPECT_EQ(StatusOf(Outcome::kComplete), 0);
  EXPECT_EQ(StatusOf(Outcome::kPartial), 3);
  EXPECT_EQ(StatusOf(Outcome::kGuestFault), 4);
  EXPECT_EQ(StatusOf(Outcome::kTimeLimit), 5);
  EXPECT_EQ(StatusOf(Outcome::kAllHalted), 6);
  EXPECT_EQ(StatusOf(Outcome::kInterrupted, SIGINT), 130);
  EXPECT_EQ(StatusOf(Outcome::kInterrupted, SIGTERM), 143);
}

TEST(ExitStatus, OfACompleteRunWhoseOutputCouldNotBeWrittenIsOne) {
  RunRecord record;
  record.serial_failed = true;
  record.outcome = Outcome::kComplete;
  EXPECT_EQ(ExitStatus(record), 1);
  record.outcome = Outcome::kPartial;
  EXPECT_EQ(ExitStatus(record), 3);
}

TEST(ExitStatus, OfAPayloadThatEndedIsItsOwn) {
  RunRecord record;
  record.outcome = Outcome::kGuestExit;
  record.serial_failed = true;
  for (const int status : {1, 3, 77, 127, 255}) {
    record.payload =
        PayloadResult{.file = "x", .kind = "PVH", .exit_status = static_cast<uint8_t>(status)};
    EXPECT_EQ(ExitStatus(record), status);
  }
}

TEST(ExitStatus, OfAPayloadThatDidNotEndIsItsOutcomes) {
  RunRecord record;
  record.payload = PayloadResult{.file = "x", .kind = "PVH", .exit_status = 0};
  record.outcome = Outcome::kGuestReset;
  EXPECT_EQ(ExitStatus(record), 11);
  record.outcome = Outcome::kTimeLimit;
  EXPECT_EQ(ExitStatus(record), 5);
}

TEST(Outcome, NamesGoBothWays) {
  for (const Outcome outcome :
       {Outcome::kComplete, Outcome::kPartial, Outcome::kGuestFault, Outcome::kAllHalted,
        Outcome::kTimeLimit, Outcome::kInterrupted, Outcome::kGuestExit, Outcome::kGuestReset}) {
    EXPECT_EQ(OutcomeByName(Name(outcome)), outcome);
  }
  EXPECT_FALSE(OutcomeByName("fine").has_value());
}

}  // namespace
}  // namespace sipi
