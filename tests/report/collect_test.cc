#include "vmm/timeline/collect.h"

#include <gtest/gtest.h>

#include <array>

namespace sipi {
namespace {

using abi::TraceEvent;
using abi::TraceRecord;

TraceRecord At(uint64_t tsc, TraceEvent event) {
  return {.tsc = tsc, .event = event, .target = 0, .value = 0};
}

constexpr TscClock k1Ghz = {.tsc_khz = 1'000'000};  // a tick is a nanosecond

TEST(Collect, MergesHostAndGuestOnTheHostsClock) {
  HostLog vm(4);
  vm.EmitAt(1'000, TraceEvent::kVmCreated);
  vm.EmitAt(5'000, TraceEvent::kRunEnd);
  const std::array<TraceRecord, 1> guest = {At(102'500, TraceEvent::kBootEntry)};
  const std::array rings = {GuestRing{.cpu = 0, .records = guest}};
  const std::array tracks = {HostTrack{.cpu = kVmTrack, .log = &vm}};
  const Timeline timeline =
      Collect(rings, tracks, {.tsc_khz = 2'000'000, .guest_minus_host = 100'000});
  ASSERT_EQ(timeline.events.size(), 3u);
  EXPECT_EQ(timeline.events[0].name, TraceEvent::kVmCreated);
  EXPECT_EQ(timeline.events[0].t_ns, 0);
  EXPECT_EQ(timeline.events[1].name, TraceEvent::kBootEntry);
  EXPECT_EQ(timeline.events[1].t_ns, 750);  // (2500 - 1000) ticks of 0.5 ns
  EXPECT_EQ(timeline.events[1].cpu, 0);
  EXPECT_EQ(timeline.events[2].t_ns, 2'000);
  EXPECT_EQ(timeline.lost, 0u);
  EXPECT_EQ(timeline.adjusted, 0u);
}

TEST(Collect, TakesAGuestClockThatIsBehindTheHosts) {
  HostLog vm(1);
  vm.EmitAt(1'000'000, TraceEvent::kVmCreated);
  const std::array<TraceRecord, 1> guest = {At(70, TraceEvent::kBootEntry)};
  const std::array rings = {GuestRing{.cpu = 0, .records = guest}};
  const std::array tracks = {HostTrack{.cpu = kVmTrack, .log = &vm}};
  const Timeline timeline =
      Collect(rings, tracks, {.tsc_khz = 1'000'000, .guest_minus_host = -1'000'000});
  EXPECT_EQ(timeline.events[1].t_ns, 70);
}

TEST(Collect, SumsWhatRingsAndLogsLost) {
  HostLog cpu1(1);
  cpu1.EmitAt(10, TraceEvent::kThreadStarted);
  cpu1.EmitAt(11, TraceEvent::kFirstRun);
  const std::array rings = {GuestRing{.cpu = 0, .lost = 5}, GuestRing{.cpu = 1, .lost = 2}};
  const std::array tracks = {HostTrack{.cpu = 1, .log = &cpu1}};
  EXPECT_EQ(Collect(rings, tracks, k1Ghz).lost, 8u);
}

// A thread took a record and was preempted, others wrote on behind it, and the run ended.
TEST(Collect, CountsGuestRecordsThatWereNeverFinishedApart) {
  TraceRecord begun = At(15, TraceEvent::kNone);  // the word of its event comes last
  begun.value = 7;
  const std::array<TraceRecord, 5> guest = {At(10, TraceEvent::kBootEntry), TraceRecord(), begun,
                                            At(30, TraceEvent::kAlive), TraceRecord()};
  const std::array rings = {GuestRing{.cpu = 0, .records = guest}};
  const Timeline timeline = Collect(rings, {}, k1Ghz);
  EXPECT_EQ(timeline.unfinished, 3u);
  EXPECT_EQ(timeline.lost, 0u);
  ASSERT_EQ(timeline.events.size(), 2u);
  EXPECT_EQ(timeline.events[1].t_ns, 20);
  const std::array full = {GuestRing{.cpu = 0, .records = guest, .lost = 3}};
  EXPECT_EQ(Collect(full, {}, k1Ghz).lost, 3u);
}

TEST(Collect, CountsFinishedGuestRecordsThatAreNoEventsAsLost) {
  TraceRecord timeless = At(0, TraceEvent::kAlive);
  TraceRecord nothing = At(20, TraceEvent::kNone);  // its last word is there, and is no event
  nothing.target = 1;
  const std::array<TraceRecord, 4> guest = {At(10, TraceEvent::kBootEntry), timeless, nothing,
                                            At(30, static_cast<TraceEvent>(0xbeef))};
  const std::array rings = {GuestRing{.cpu = 0, .records = guest}};
  const Timeline timeline = Collect(rings, {}, k1Ghz);
  EXPECT_EQ(timeline.unfinished, 0u);
  EXPECT_EQ(timeline.lost, 3u);
}

TEST(Collect, RefusesEventsThatAGuestCannotHave) {
  const std::array<TraceRecord, 3> guest = {At(10, TraceEvent::kRunEnd),              // the host's
                                            At(20, static_cast<TraceEvent>(0xbeef)),  // nobody's
                                            At(30, TraceEvent::kAlive)};
  const std::array rings = {GuestRing{.cpu = 0, .records = guest}};
  const Timeline timeline = Collect(rings, {}, k1Ghz);
  EXPECT_EQ(timeline.lost, 2u);
  ASSERT_EQ(timeline.events.size(), 1u);
  EXPECT_EQ(timeline.events[0].name, TraceEvent::kAlive);
}

TEST(Collect, KeepsTheOrderOfATrackWhoseClockGoesBack) {
  // An interrupt takes the next slot and writes it before the interrupted code has read its time.
  const std::array<TraceRecord, 3> guest = {At(100, TraceEvent::kAlive), At(90, TraceEvent::kWake),
                                            At(110, TraceEvent::kReleased)};
  const std::array rings = {GuestRing{.cpu = 0, .records = guest}};
  const Timeline timeline = Collect(rings, {}, k1Ghz);
  ASSERT_EQ(timeline.events.size(), 3u);
  EXPECT_EQ(timeline.events[0].name, TraceEvent::kAlive);
  EXPECT_EQ(timeline.events[1].name, TraceEvent::kWake);
  EXPECT_EQ(timeline.events[1].t_ns, 0);
  EXPECT_EQ(timeline.events[2].t_ns, 10);
  EXPECT_EQ(timeline.adjusted, 1u);
}

TEST(Collect, PutsTheHostsEventFirstAtTheSameTime) {
  HostLog cpu1(1);
  cpu1.EmitAt(50, TraceEvent::kSipiDelivered, 0, 8);
  const std::array<TraceRecord, 1> guest = {At(50, TraceEvent::kFirstInstruction)};
  const std::array rings = {GuestRing{.cpu = 1, .records = guest}};
  const std::array tracks = {HostTrack{.cpu = 1, .log = &cpu1}};
  const Timeline timeline = Collect(rings, tracks, k1Ghz);
  EXPECT_EQ(timeline.events[0].name, TraceEvent::kSipiDelivered);
  EXPECT_EQ(timeline.events[1].name, TraceEvent::kFirstInstruction);
}

TEST(Collect, MovesWildTimesOfTheGuestIntoTheRun) {
  HostLog vm(1);
  vm.EmitAt(1'000, TraceEvent::kVmCreated);
  const std::array<TraceRecord, 2> guest = {At(1, TraceEvent::kBootEntry),
                                            At(0x7fff'ffff'ffff'ffff, TraceEvent::kAlive)};
  const std::array rings = {GuestRing{.cpu = 0, .records = guest}};
  const std::array tracks = {HostTrack{.cpu = kVmTrack, .log = &vm}};
  // At 1 kHz the wild time is far beyond what nanoseconds in 64 bits can say.
  const Timeline timeline = Collect(rings, tracks, {.tsc_khz = 1});
  EXPECT_EQ(timeline.events[0].t_ns, 0);
  EXPECT_EQ(timeline.events[1].t_ns, 0);
  EXPECT_EQ(timeline.events[2].t_ns, INT64_MAX);
  EXPECT_EQ(timeline.adjusted, 1u);
}

TEST(Collect, OfNothingIsEmpty) {
  const Timeline timeline = Collect({}, {}, k1Ghz);
  EXPECT_TRUE(timeline.events.empty());
  EXPECT_EQ(timeline.lost, 0u);
}

}  // namespace
}  // namespace sipi
