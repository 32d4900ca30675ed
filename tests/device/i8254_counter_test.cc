#include "vmm/device/i8254_counter.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/device/clocked_8254.h"

namespace sipi {
namespace {

using Ticks = I8254Counter::Ticks;

constexpr uint8_t kLowByte = 0x10;
constexpr uint8_t kBothBytes = 0x30;
constexpr uint8_t kBcd = 0x01;
constexpr uint8_t Mode(int mode) { return static_cast<uint8_t>(mode << 1); }

// A counter in `mode`, gate high, with the count's low byte written before pulse 1.
I8254Counter Started(int mode, uint8_t count) {
  I8254Counter counter;
  counter.WriteControl(kLowByte | Mode(mode), 0);
  counter.WriteCount(count, 0);
  return counter;
}

// OUT and count after each of the first pulses, as in the data sheet's figures: "L3" is OUT low,
// count 3.
std::vector<std::string> Wave(I8254Counter counter, Ticks first, Ticks pulses) {
  std::vector<std::string> wave;
  for (Ticks now = first; now < first + pulses; ++now) {
    wave.push_back((counter.Out(now) ? "H" : "L") + std::to_string(counter.Read(now)));
  }
  return wave;
}

using Words = std::vector<std::string>;

TEST(I8254Counter, Mode0RisesAtTerminalCountAndCountsOn) {
  EXPECT_EQ(Wave(Started(0, 4), 1, 7), (Words{"L4", "L3", "L2", "L1", "H0", "H255", "H254"}));
}

TEST(I8254Counter, Mode1IsLowForTheCountAfterATrigger) {
  I8254Counter counter;
  counter.SetGate(false, 0);
  counter.WriteControl(kLowByte | Mode(1), 0);
  counter.WriteCount(3, 0);
  EXPECT_TRUE(counter.Out(5));
  counter.SetGate(true, 5);
  EXPECT_TRUE(counter.Out(5)) << "OUT falls with the pulse after the trigger";
  EXPECT_EQ(Wave(counter, 6, 5), (Words{"L3", "L2", "L1", "H0", "H255"}));
  counter.SetGate(false, 7);
  counter.SetGate(true, 7);
  EXPECT_EQ(Wave(counter, 8, 4), (Words{"L3", "L2", "L1", "H0"})) << "retriggered";
}

TEST(I8254Counter, Mode2IsLowForThePulseBeforeItReloads) {
  EXPECT_EQ(Wave(Started(2, 3), 1, 7), (Words{"H3", "H2", "L1", "H3", "H2", "L1", "H3"}));
}

TEST(I8254Counter, Mode2TakesANewCountAtTheEndOfItsCycle) {
  I8254Counter counter = Started(2, 4);
  counter.WriteCount(3, 2);
  EXPECT_EQ(Wave(counter, 2, 7), (Words{"H3", "H2", "L1", "H3", "H2", "L1", "H3"}));
}

TEST(I8254Counter, Mode2StartsOverWhenGateRises) {
  I8254Counter counter = Started(2, 4);
  counter.SetGate(false, 4);
  EXPECT_TRUE(counter.Out(4)) << "at once, although the count is 1";
  EXPECT_EQ(Wave(counter, 6, 2), (Words{"H1", "H1"}));
  counter.SetGate(true, 8);
  EXPECT_EQ(Wave(counter, 9, 5), (Words{"H4", "H3", "H2", "L1", "H4"}));
}

TEST(I8254Counter, Mode3IsASquareWaveInStepsOfTwo) {
  EXPECT_EQ(Wave(Started(3, 4), 1, 6), (Words{"H4", "H2", "L4", "L2", "H4", "H2"}));
}

TEST(I8254Counter, Mode3WithAnOddCountIsHighOnePulseLonger) {
  EXPECT_EQ(Wave(Started(3, 5), 1, 7), (Words{"H4", "H2", "H0", "L4", "L2", "H4", "H2"}));
}

TEST(I8254Counter, Mode3TakesANewCountAtTheEndOfItsHalfCycle) {
  I8254Counter counter = Started(3, 8);
  counter.WriteCount(4, 2);
  EXPECT_EQ(Wave(counter, 3, 7), (Words{"H4", "H2", "L4", "L2", "H4", "H2", "L4"}));
}

TEST(I8254Counter, Mode4StrobesOnceForOnePulse) {
  EXPECT_EQ(Wave(Started(4, 3), 1, 6), (Words{"H3", "H2", "H1", "L0", "H255", "H254"}));
}

TEST(I8254Counter, Mode5StrobesAfterATrigger) {
  I8254Counter counter;
  counter.SetGate(false, 0);
  counter.WriteControl(kLowByte | Mode(5), 0);
  counter.WriteCount(2, 0);
  counter.SetGate(true, 3);
  EXPECT_EQ(Wave(counter, 4, 4), (Words{"H2", "H1", "L0", "H255"}));
}

TEST(I8254Counter, GatePausesMode0) {
  I8254Counter counter = Started(0, 4);
  counter.SetGate(false, 3);
  EXPECT_EQ(Wave(counter, 10, 1), (Words{"L2"}));
  EXPECT_EQ(counter.NextEdge(10), std::nullopt);
  counter.SetGate(true, 20);
  EXPECT_EQ(Wave(counter, 21, 2), (Words{"L1", "H0"}));
}

TEST(I8254Counter, ACountWrittenWhileGateIsLowIsLoadedAndWaits) {
  I8254Counter counter;
  counter.SetGate(false, 0);
  counter.WriteControl(kLowByte | Mode(0), 0);
  counter.WriteCount(3, 0);
  counter.SetGate(true, 10);
  EXPECT_EQ(counter.NextEdge(10), 13) << "N pulses, none to load";
}

TEST(I8254Counter, TheFirstOfTwoBytesStopsMode0) {
  I8254Counter counter;
  counter.WriteControl(kBothBytes | Mode(0), 0);
  counter.WriteCount(2, 0);
  counter.WriteCount(0, 0);
  EXPECT_TRUE(counter.Out(10));
  counter.WriteCount(0x00, 10);
  EXPECT_FALSE(counter.Out(10));
  EXPECT_FALSE(counter.Out(1000));
  counter.WriteCount(0x01, 1000);
  EXPECT_EQ(counter.NextEdge(1000), 1000 + 1 + 256);
}

TEST(I8254Counter, ZeroIsTheLargestCount) {
  I8254Counter binary;
  binary.WriteControl(kBothBytes | Mode(2), 0);
  binary.WriteCount(0, 0);
  binary.WriteCount(0, 0);
  EXPECT_EQ(binary.NextEdge(0), 65'536);
  I8254Counter bcd;
  bcd.WriteControl(kBothBytes | Mode(2) | kBcd, 0);
  bcd.WriteCount(0, 0);
  bcd.WriteCount(0, 0);
  EXPECT_EQ(bcd.NextEdge(0), 10'000);
  bcd.LatchCount(2);
  EXPECT_EQ(bcd.Read(2), 0x99);
  EXPECT_EQ(bcd.Read(2), 0x99);
}

TEST(I8254Counter, CountsDecimallyInBcd) {
  I8254Counter counter;
  counter.WriteControl(kBothBytes | Mode(0) | kBcd, 0);
  counter.WriteCount(0x00, 0);
  counter.WriteCount(0x10, 0);  // 1000
  counter.LatchCount(2);
  EXPECT_EQ(counter.Read(2), 0x99);
  EXPECT_EQ(counter.Read(2), 0x09);
  EXPECT_EQ(counter.NextEdge(2), 1001);
  counter.LatchCount(1003);
  EXPECT_EQ(counter.Read(1003), 0x98) << "0 is followed by 9999";
  EXPECT_EQ(counter.Read(1003), 0x99);
}

TEST(I8254Counter, ALatchedCountStandsUntilReadWhole) {
  I8254Counter counter;
  counter.WriteControl(kBothBytes | Mode(2), 0);
  counter.WriteCount(0x00, 0);
  counter.WriteCount(0x10, 0);  // 4096
  counter.LatchCount(0x101);    // 100H pulses after loading
  counter.LatchCount(0x901);
  EXPECT_EQ(counter.Read(0xa00), 0x00);
  EXPECT_EQ(counter.Read(0xa01), 0x0f) << "0F00H, from the first latch";
  EXPECT_EQ(counter.Read(0xb01), 0x00) << "running again: 500H";
  EXPECT_EQ(counter.Read(0xb01), 0x05);
}

TEST(I8254Counter, AStatusIsReadBeforeTheCount) {
  I8254Counter counter;
  counter.WriteControl(kBothBytes | Mode(6), 0);  // mode 2, as X10
  counter.LatchStatus(0);
  EXPECT_EQ(counter.Read(0), 0xc0 | 0x3c) << "OUT high, null count, as written";
  counter.WriteCount(10, 0);
  counter.WriteCount(0, 0);
  counter.LatchStatus(0);
  EXPECT_EQ(counter.Read(0), 0xfc) << "not in the counting element yet";
  counter.LatchCount(4);
  counter.LatchStatus(4);
  EXPECT_EQ(counter.Read(4), 0xbc);
  EXPECT_EQ(counter.Read(4), 7);
  EXPECT_EQ(counter.Read(4), 0);
  counter.LatchStatus(10);
  EXPECT_EQ(counter.Read(10), 0x3c) << "OUT low";
  counter.WriteCount(20, 10);
  counter.WriteCount(0, 10);
  counter.LatchStatus(10);
  EXPECT_EQ(counter.Read(10), 0x7c) << "waits for the end of the cycle";
  counter.LatchStatus(11);
  EXPECT_EQ(counter.Read(11), 0xbc);
}

TEST(I8254Counter, NullCountOfAOneShotLastsUntilTheTrigger) {
  I8254Counter counter;
  counter.SetGate(false, 0);
  counter.WriteControl(kLowByte | Mode(1), 0);
  counter.WriteCount(9, 0);
  counter.LatchStatus(50);
  EXPECT_EQ(counter.Read(50) & 0x40, 0x40);
  counter.SetGate(true, 50);
  counter.LatchStatus(51);
  EXPECT_EQ(counter.Read(51) & 0x40, 0x00);
}

TEST(I8254Counter, AControlWordEndsAnAccessHalfDone) {
  I8254Counter counter;
  counter.WriteControl(kBothBytes | Mode(2), 0);
  counter.WriteCount(0x34, 0);
  counter.WriteControl(kBothBytes | Mode(2), 0);
  counter.WriteCount(0x06, 0);
  EXPECT_EQ(counter.NextEdge(100), std::nullopt) << "the other half is missing";
  counter.WriteCount(0x00, 100);
  EXPECT_EQ(counter.NextEdge(100), 106);
}

TEST(I8254Counter, IllegalCountOf1HasNoEdges) {
  for (const int mode : {2, 3}) {
    I8254Counter counter = Started(mode, 1);
    EXPECT_EQ(counter.NextEdge(5), std::nullopt);
    counter.WriteCount(4, 5);
    EXPECT_TRUE(counter.NextEdge(5).has_value());
  }
}

// What happens between two pulses, at random; after each pulse both must show the same OUT and
// count, and NextEdge must have said so before.
class Differential : public testing::TestWithParam<int> {};

TEST_P(Differential, AgreesWithTheClockedCounter) {
  std::mt19937 random(static_cast<uint32_t>(GetParam()));
  const auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  I8254Counter counter;
  Clocked8254 clocked;
  int mode = 0;
  Ticks now = 0;
  const auto write_mode = [&] {
    mode = static_cast<int>(below(6));
    counter.WriteControl(static_cast<uint8_t>(kLowByte | Mode(mode)), now);
    clocked.WriteMode(mode);
  };
  write_mode();
  for (int step = 0; step < 20'000; ++step) {
    const uint32_t what = below(60);
    if (what == 0) write_mode();
    if (what >= 1 && what <= 2) {
      const uint8_t count = static_cast<uint8_t>(2 + below(12));
      counter.WriteCount(count, now);
      clocked.WriteCount(count);
    }
    if (what >= 3 && what <= 6) {
      const bool gate = what != 3;
      counter.SetGate(gate, now);
      clocked.SetGate(gate);
    }
    const bool before = counter.Out(now);
    ASSERT_EQ(before, clocked.out()) << "mode " << mode << ", pulse " << now;
    const std::optional<Ticks> edge = counter.NextEdge(now);
    ASSERT_TRUE(!edge.has_value() || *edge > now);
    clocked.Clock();
    ++now;
    ASSERT_EQ(counter.Out(now), clocked.out()) << "mode " << mode << ", pulse " << now;
    ASSERT_EQ(counter.Out(now) != before, edge == now) << "mode " << mode << ", pulse " << now;
    ASSERT_EQ(counter.Read(now), clocked.count() & 0xff) << "mode " << mode << ", pulse " << now;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Differential, testing::Range(1, 21));

}  // namespace
}  // namespace sipi
