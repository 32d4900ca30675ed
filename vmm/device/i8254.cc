#include "vmm/device/i8254.h"

#include "vmm/device/port_access.h"

namespace sipi {
namespace {

using Ticks = I8254Counter::Ticks;

constexpr uint64_t kNsPerSecond = 1'000'000'000;

// Port 61H.
constexpr uint8_t kGate2 = 0x01;
constexpr uint8_t kWritable = 0x0f;
constexpr uint8_t kRefreshToggle = 0x10;
constexpr uint8_t kOut2 = 0x20;
constexpr uint64_t kRefreshNs = 15'085;  // counter 1's usual period, 18 pulses

// Pulses up to and including `ns`, in two parts, since ns * kPitHz leaves 64 bits after four hours.
Ticks TicksAt(uint64_t ns) {
  return static_cast<Ticks>(ns / kNsPerSecond * kPitHz + ns % kNsPerSecond * kPitHz / kNsPerSecond);
}

// The first nanosecond that has seen `ticks` pulses.
uint64_t NsOf(Ticks ticks) {
  const uint64_t count = static_cast<uint64_t>(ticks);
  return count / kPitHz * kNsPerSecond + (count % kPitHz * kNsPerSecond + kPitHz - 1) / kPitHz;
}

}  // namespace

std::array<I8254Counter, 3> I8254::MakeCounters() {
  std::array<I8254Counter, 3> counters;
  counters[2].SetGate(false, 0);
  return counters;
}

uint32_t I8254::Read(uint16_t port, uint32_t size, uint64_t now_ns) {
  return ReadByteByByte(port, size, [&](uint16_t at) { return ReadByte(at, now_ns); });
}

void I8254::Write(uint16_t port, uint32_t size, uint32_t value, uint64_t now_ns) {
  WriteByteByByte(port, size, value,
                  [&](uint16_t at, uint8_t byte) { WriteByte(at, byte, now_ns); });
}

uint8_t I8254::ReadByte(uint16_t port, uint64_t now_ns) {
  if (port == kSystemControl) return ReadSystemControl(now_ns);
  // "Read Operation Summary": the control word register cannot be read.
  if (port < kCounter0 || port >= kControl) return 0xff;
  return counters_[port - kCounter0].Read(TicksAt(now_ns));
}

uint8_t I8254::ReadSystemControl(uint64_t now_ns) const {
  const bool refresh = now_ns / kRefreshNs % 2 != 0;
  return static_cast<uint8_t>(system_control_ | (refresh ? kRefreshToggle : 0) |
                              (Out(2, now_ns) ? kOut2 : 0));
}

void I8254::WriteByte(uint16_t port, uint8_t value, uint64_t now_ns) {
  const Ticks now = TicksAt(now_ns);
  if (port == kSystemControl) {
    system_control_ = value & kWritable;
    counters_[2].SetGate((value & kGate2) != 0, now);
  } else if (port == kControl) {
    WriteControl(value, now);
  } else if (port >= kCounter0 && port < kControl) {
    counters_[port - kCounter0].WriteCount(value, now);
  }
}

void I8254::WriteControl(uint8_t value, Ticks now) {
  constexpr uint8_t kReadBack = 3;  // SC1, SC0
  const uint8_t select = value >> 6;
  if (select != kReadBack) {
    I8254Counter& counter = counters_[select];
    if ((value & 0x30) == 0) {
      counter.LatchCount(now);
    } else {
      counter.WriteControl(value, now);
    }
    return;
  }
  for (uint32_t i = 0; i < counters_.size(); ++i) {
    if ((value >> (i + 1) & 1) == 0) continue;
    if ((value & 0x20) == 0) counters_[i].LatchCount(now);
    if ((value & 0x10) == 0) counters_[i].LatchStatus(now);
  }
}

bool I8254::Out(uint32_t counter, uint64_t now_ns) const {
  return counters_[counter].Out(TicksAt(now_ns));
}

std::optional<uint64_t> I8254::NextEdgeNs(uint32_t counter, uint64_t now_ns) const {
  const std::optional<Ticks> edge = counters_[counter].NextEdge(TicksAt(now_ns));
  if (!edge.has_value()) return std::nullopt;
  return NsOf(*edge);
}

std::optional<uint64_t> I8254::NextRisingEdgeNs(uint32_t counter, uint64_t now_ns) const {
  const std::optional<uint64_t> edge = NextEdgeNs(counter, now_ns);
  if (!edge.has_value() || Out(counter, *edge)) return edge;
  return NextEdgeNs(counter, *edge);
}

}  // namespace sipi
