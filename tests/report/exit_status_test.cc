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

TEST(Outcome, NamesGoBothWays) {
  for (const Outcome outcome : {Outcome::kComplete, Outcome::kPartial, Outcome::kGuestFault,
                                Outcome::kAllHalted, Outcome::kTimeLimit, Outcome::kInterrupted}) {
    EXPECT_EQ(OutcomeByName(Name(outcome)), outcome);
  }
  EXPECT_FALSE(OutcomeByName("fine").has_value());
}

}  // namespace
}  // namespace sipi
