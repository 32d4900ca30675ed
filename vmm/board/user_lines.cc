#include "vmm/board/user_lines.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "vmm/device/monotonic_clock.h"

namespace sipi {
namespace {

constexpr uint64_t kIoApicBytes = 0x1000;
constexpr uint32_t kTimerLine = 0;
constexpr uint32_t kTimerInput = 2;   // of the I/O APIC
constexpr uint32_t kIntPinInput = 0;  // the 8259's INT is wired to it
constexpr uint64_t kMaskedEntry = 1u << 16;
constexpr uint64_t kMessageBits = 0xff00'0000'0000'8fff;  // vector, modes, trigger, destination

bool IsIoApic(Gpa gpa, size_t bytes) {
  return gpa.value >= kIoApicGpa && gpa.value + bytes <= kIoApicGpa + kIoApicBytes;
}

}  // namespace

UserLines::UserLines(Outputs outputs)
    : outputs_(std::move(outputs)), caught_up_ns_(MonotonicNs()) {}

UserLines::~UserLines() { Stop(); }

void UserLines::ProgramAsFirmware() {
  const std::lock_guard lock(mutex_);
  pic_.ProgramAsFirmware();
  PublishLocked();
}

absl::Status UserLines::Start() {
  const int error = pthread_create(&thread_, nullptr, &UserLines::TimerMain, this);
  if (error != 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("pthread_create for the 8254: ", std::strerror(error),
                     "; raise the limit of threads (ulimit -u)"));
  }
  started_ = true;
  return absl::OkStatus();
}

void UserLines::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    timer_changed_.notify_all();
  }
  if (started_) pthread_join(thread_, nullptr);
  started_ = false;
}

void UserLines::SetLine(uint32_t line, bool high) {
  const std::lock_guard lock(mutex_);
  SetLineLocked(line, high);
  PublishLocked();
}

void UserLines::SetLineLocked(uint32_t line, bool high) {
  pic_.SetLine(line, high);
  SetInputLocked(line == kTimerLine ? kTimerInput : line, high);
}

void UserLines::SetInputLocked(uint32_t input, bool high) {
  if (const auto message = io_apic_.SetLine(input, high)) SendLocked(*message);
}

void UserLines::SendLocked(const IoApicMessage& message) {
  if (!outputs_.send(message)) io_apic_.NotAccepted(message.input);
}

void UserLines::SendLocked(const IoApicMessages& messages) {
  for (const IoApicMessage& message : messages) SendLocked(message);
}

bool UserLines::ReadPort(uint16_t port, uint32_t size, uint32_t* value) {
  const bool pic = I8259::Claims(port);
  if (!pic && !I8254::Claims(port)) return false;
  const std::lock_guard lock(mutex_);
  const uint64_t now_ns = MonotonicNs();
  CatchUpLocked(now_ns);
  *value = pic ? pic_.Read(port, size) : pit_.Read(port, size, now_ns);
  PublishLocked();
  return true;
}

bool UserLines::WritePort(uint16_t port, uint32_t size, uint32_t value) {
  const bool pic = I8259::Claims(port);
  if (!pic && !I8254::Claims(port)) return false;
  const std::lock_guard lock(mutex_);
  const uint64_t now_ns = MonotonicNs();
  CatchUpLocked(now_ns);
  if (pic) {
    pic_.Write(port, size, value);
  } else {
    pit_.Write(port, size, value, now_ns);
    SetLineLocked(kTimerLine, pit_.Out(0, now_ns));
  }
  PublishLocked();
  return true;
}

bool UserLines::ReadMmio(Gpa gpa, std::span<std::byte> data) {
  if (!IsIoApic(gpa, data.size())) return false;
  const std::lock_guard lock(mutex_);
  CatchUpLocked(MonotonicNs());
  const uint32_t value = io_apic_.Read(gpa.value - kIoApicGpa);
  std::fill(data.begin(), data.end(), std::byte{0});
  std::memcpy(data.data(), &value, std::min(data.size(), sizeof value));
  PublishLocked();
  return true;
}

bool UserLines::WriteMmio(Gpa gpa, std::span<const std::byte> data) {
  if (!IsIoApic(gpa, data.size())) return false;
  uint32_t value = 0;
  std::memcpy(&value, data.data(), std::min(data.size(), sizeof value));
  const std::lock_guard lock(mutex_);
  CatchUpLocked(MonotonicNs());
  const IoApicMessages messages = io_apic_.Write(gpa.value - kIoApicGpa, value);
  PublishRoutesLocked();  // before its interrupt can be taken, and ended, by another CPU
  SendLocked(messages);
  PublishLocked();
  return true;
}

void UserLines::EndOfInterrupt(Vector vector) {
  const std::lock_guard lock(mutex_);
  SendLocked(io_apic_.EndOfInterrupt(vector));
}

void UserLines::TargetsChanged() {
  const std::lock_guard lock(mutex_);
  SendLocked(io_apic_.Retry());
}

Vector UserLines::Acknowledge() {
  const std::lock_guard lock(mutex_);
  const Vector vector = pic_.Acknowledge();
  // INT falls in the cycle. If there is a request above this one, it rises again.
  SetInputLocked(kIntPinInput, false);
  int_pin_.store(false, std::memory_order_seq_cst);
  PublishLocked();
  return vector;
}

void UserLines::CatchUpLocked(uint64_t now_ns) {
  // However many periods went by, the line has one edge for whoever looks now: the 8259 and the I/O
  // APIC would have merged the others.
  const std::optional<uint64_t> rise = pit_.NextRisingEdgeNs(0, caught_up_ns_);
  if (rise && *rise <= now_ns) {
    SetLineLocked(kTimerLine, false);
    SetLineLocked(kTimerLine, true);
  }
  SetLineLocked(kTimerLine, pit_.Out(0, now_ns));
  caught_up_ns_ = now_ns;
}

std::optional<uint64_t> UserLines::NextTickNsLocked(uint64_t now_ns) const {
  const bool pic_listens = (pic_.master().mask() & 1u << kTimerLine) == 0;
  const bool io_apic_listens = (io_apic_.entry(kTimerInput) & kMaskedEntry) == 0;
  if (!pic_listens && !io_apic_listens) return std::nullopt;
  return pit_.NextRisingEdgeNs(0, now_ns);
}

void UserLines::PublishRoutesLocked() {
  if (!outputs_.routes_changed) return;
  bool changed = false;
  for (uint32_t input = 0; input < kIoApicInputs; ++input) {
    const uint64_t route = io_apic_.entry(input) & kMessageBits;
    changed |= std::exchange(routes_[input], route) != route;
  }
  if (changed) outputs_.routes_changed();
}

void UserLines::PublishIntPinLocked() {
  const bool high = pic_.IntPin();
  const bool was_high = int_pin_.exchange(high, std::memory_order_seq_cst);
  if (high && !was_high) {
    SetInputLocked(kIntPinInput, true);  // the pulse is the edge
    outputs_.int_pin_rose();
  } else if (!high && was_high) {
    SetInputLocked(kIntPinInput, false);
  }
}

void UserLines::PublishLocked() {
  PublishIntPinLocked();
  const std::optional<uint64_t> next_tick_ns = NextTickNsLocked(caught_up_ns_);
  if (std::exchange(next_tick_ns_, next_tick_ns) == next_tick_ns) return;
  const bool idle = !next_tick_ns.has_value();
  if (timer_idle_.exchange(idle, std::memory_order_acq_rel) != idle) outputs_.timer_idle(idle);
  timer_changed_.notify_all();
}

void* UserLines::TimerMain(void* self) {
  pthread_setname_np(pthread_self(), "i8254");
  static_cast<UserLines*>(self)->TimerLoop();
  return nullptr;
}

void UserLines::TimerLoop() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const std::optional<uint64_t> due_ns = next_tick_ns_;
    if (!due_ns) {
      timer_changed_.wait(lock);
      continue;
    }
    const uint64_t now_ns = MonotonicNs();
    if (*due_ns > now_ns) {
      timer_changed_.wait_for(lock, std::chrono::nanoseconds(*due_ns - now_ns));
      continue;
    }
    CatchUpLocked(now_ns);
    PublishLocked();
  }
}

}  // namespace sipi
