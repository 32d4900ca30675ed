#include "vmm/device/i8254.h"

#include <gtest/gtest.h>

namespace sipi {
namespace {

constexpr uint16_t kControl = 0x43;
constexpr uint64_t kMs = 1'000'000;

void Program(I8254& pit, uint16_t counter, uint8_t control, uint16_t count, uint64_t now_ns) {
  pit.Write(kControl, 1, control, now_ns);
  pit.Write(static_cast<uint16_t>(0x40 + counter), 1, count & 0xff, now_ns);
  pit.Write(static_cast<uint16_t>(0x40 + counter), 1, count >> 8, now_ns);
}

uint16_t ReadCount(I8254& pit, uint16_t counter, uint64_t now_ns) {
  const uint16_t port = static_cast<uint16_t>(0x40 + counter);
  const uint32_t low = pit.Read(port, 1, now_ns);
  return static_cast<uint16_t>(pit.Read(port, 1, now_ns) << 8 | low);
}

// Linux's tick at 250 Hz: mode 2, 4773 pulses of 838.095 ns.
TEST(I8254, TheTickRisesEveryFourMilliseconds) {
  I8254 pit;
  Program(pit, 0, 0x34, 4773, 0);
  // Loaded with pulse 1; rises again with pulse 1 + 4773.
  const uint64_t first = 4'001'067;  // 4774 * 10^9 / 1193182, up
  EXPECT_EQ(pit.NextRisingEdgeNs(0, 0), first);
  EXPECT_FALSE(pit.Out(0, first - 1));
  EXPECT_TRUE(pit.Out(0, first));
  EXPECT_EQ(pit.NextRisingEdgeNs(0, first), 8'001'295u);
  EXPECT_EQ(pit.NextEdgeNs(0, 0), 4'000'228u) << "falls one pulse before";
}

// The BIOS's 18.2 Hz: count 0 in mode 3.
TEST(I8254, ThePeriodOfTheLargestCountIs54Point9Ms) {
  I8254 pit;
  Program(pit, 0, 0x36, 0, 0);
  const uint64_t first = *pit.NextRisingEdgeNs(0, 0);
  const uint64_t second = *pit.NextRisingEdgeNs(0, first);
  EXPECT_NEAR(static_cast<double>(second - first), 54'925'401.2, 1.0);
}

TEST(I8254, OverdueTicksAreFoundOneAfterTheOther) {
  I8254 pit;
  Program(pit, 0, 0x34, 1193, 0);  // 1 ms
  uint64_t at = 0;
  int ticks = 0;
  while (const auto edge = pit.NextRisingEdgeNs(0, at)) {
    if (*edge > 1000 * kMs) break;
    at = *edge;
    ++ticks;
  }
  EXPECT_EQ(ticks, 1000) << "1193182 pulses / 1193";
}

TEST(I8254, KeepsItsRateForDays) {
  I8254 pit;
  Program(pit, 0, 0x34, 4773, 0);
  constexpr uint64_t kTenDays = 864'000ull * 1000 * kMs;
  const uint64_t edge = *pit.NextRisingEdgeNs(0, kTenDays);
  EXPECT_LE(edge - kTenDays, 4'000'229u);
  EXPECT_TRUE(pit.Out(0, edge));
  EXPECT_FALSE(pit.Out(0, edge - 1));
}

TEST(I8254, LatchedCountsAreThoseOfTheMomentGiven) {
  I8254 pit;
  Program(pit, 0, 0x34, 0, 0);
  pit.Write(kControl, 1, 0x00, 1 * kMs);
  EXPECT_EQ(ReadCount(pit, 0, 5 * kMs), 65'536 - (1193 - 1));
}

// How Linux calibrates the TSC: counter 2 in mode 0, gated by port 61H, until OUT shows in bit 5.
TEST(I8254, Counter2CountsWhilePort61GatesItAndShowsItsOutput) {
  I8254 pit;
  pit.Write(0x61, 1, 0x01, 0);
  Program(pit, 2, 0xb0, 11'932, 0);  // 10 ms
  EXPECT_EQ(pit.Read(0x61, 1, 9 * kMs) & 0x21, 0x01u);
  const uint64_t edge = *pit.NextEdgeNs(2, 0);
  EXPECT_EQ(edge, 10'000'989u);  // 11933 pulses
  EXPECT_EQ(pit.Read(0x61, 1, edge - 1) & 0x20, 0x00u);
  EXPECT_EQ(pit.Read(0x61, 1, edge) & 0x20, 0x20u);
}

TEST(I8254, Counter2StandsStillWithoutItsGate) {
  I8254 pit;
  Program(pit, 2, 0xb0, 1000, 0);
  EXPECT_EQ(pit.NextEdgeNs(2, 100 * kMs), std::nullopt);
  pit.Write(0x61, 1, 0x01, 100 * kMs);
  EXPECT_TRUE(pit.NextEdgeNs(2, 100 * kMs).has_value());
}

TEST(I8254, Port61KeepsItsLowFourBitsAndTogglesBit4) {
  I8254 pit;
  pit.Write(0x61, 1, 0xff, 0);
  EXPECT_EQ(pit.Read(0x61, 1, 0) & 0xcf, 0x0fu);
  EXPECT_EQ(pit.Read(0x61, 1, 0) & 0x10, 0x00u);
  EXPECT_EQ(pit.Read(0x61, 1, 15'100) & 0x10, 0x10u);
  EXPECT_EQ(pit.Read(0x61, 1, 30'200) & 0x10, 0x00u);
}

TEST(I8254, ReadBackLatchesStatusAndCountOfSeveralCounters) {
  I8254 pit;
  Program(pit, 0, 0x34, 1000, 0);
  Program(pit, 1, 0x74, 2000, 0);
  pit.Write(kControl, 1, 0xc6, kMs / 2);  // counters 0 and 1, both; 596 pulses
  EXPECT_EQ(pit.Read(0x40, 1, kMs), 0xb4u);
  EXPECT_EQ(ReadCount(pit, 0, kMs), 1000 - 595);
  EXPECT_EQ(pit.Read(0x41, 1, kMs), 0xb4u);
  EXPECT_EQ(ReadCount(pit, 1, kMs), 2000 - 595);
}

TEST(I8254, AReadBackForCountOnlyLeavesNoStatus) {
  I8254 pit;
  Program(pit, 0, 0x34, 1000, 0);
  pit.Write(kControl, 1, 0xd2, kMs / 2);
  EXPECT_EQ(ReadCount(pit, 0, kMs), 405);
}

TEST(I8254, TheControlPortCannotBeRead) {
  I8254 pit;
  EXPECT_EQ(pit.Read(kControl, 1, 0), 0xffu);
}

TEST(I8254, NothingComesOfACounterThatIsNotProgrammed) {
  const I8254 pit;
  EXPECT_EQ(pit.NextEdgeNs(0, 0), std::nullopt);
  EXPECT_EQ(pit.NextRisingEdgeNs(0, 0), std::nullopt);
}

}  // namespace
}  // namespace sipi
