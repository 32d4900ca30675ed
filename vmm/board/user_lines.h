// A PC's interrupt controllers and timer as the VMM's own: two 8259, an I/O APIC, an 8254 with a
// thread that raises IRQ 0.
//
// One mutex serialises them. It is not on the way of an IPI: a CPU takes it for accesses to these
// devices, for the end of a level-triggered interrupt, and to acknowledge the 8259.
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

#include "absl/status/status.h"
#include "apic/regs/icr.h"
#include "vmm/board/interrupt_lines.h"
#include "vmm/device/i8254.h"
#include "vmm/device/i8259.h"
#include "vmm/device/io_apic.h"

namespace sipi {

class UserLines final : public InterruptLines {
 public:
  // What the controllers do to the rest of the machine. Called with the mutex held, on any thread:
  // they must not call back.
  struct Outputs {
    // An I/O APIC's message. False: no local APIC took it.
    std::function<bool(const IoApicMessage&)> send;
    std::function<void()> int_pin_rose;  // the 8259's INT: tell the boot CPU
    // A redirection entry stands for another message, of which none has been sent. May be null.
    std::function<void()> routes_changed;
    // The timer's thread has nothing to wait for (true), or may raise an interrupt (false): never
    // twice the same. It begins with nothing to wait for.
    std::function<void(bool idle)> timer_idle;
  };
  explicit UserLines(Outputs outputs);
  ~UserLines() override;

  // Programs the 8259s as a PC's firmware does.
  void ProgramAsFirmware();

  // Starts the timer's thread; call with all signals blocked. Error: ResourceExhausted.
  absl::Status Start();
  // Ends it. Idempotent.
  void Stop();

  void SetLine(uint32_t line, bool high) override;
  bool ReadPort(uint16_t port, uint32_t size, uint32_t* value) override;
  bool WritePort(uint16_t port, uint32_t size, uint32_t value) override;
  bool ReadMmio(Gpa gpa, std::span<std::byte> data) override;
  bool WriteMmio(Gpa gpa, std::span<const std::byte> data) override;
  void EndOfInterrupt(Vector vector) override;
  void TargetsChanged() override;
  bool IntPin() const override { return int_pin_.load(std::memory_order_seq_cst); }
  Vector Acknowledge() override;

  // The timer's thread has nothing to wait for. Any thread.
  bool timer_idle() const { return timer_idle_.load(std::memory_order_acquire); }

  // A redirection entry, for `routes_changed` (which holds the mutex).
  uint64_t EntryLocked(uint32_t input) const { return io_apic_.entry(input); }

 private:
  static void* TimerMain(void* self);
  void TimerLoop();
  void SetLineLocked(uint32_t line, bool high);
  // An input of the I/O APIC.
  void SetInputLocked(uint32_t input, bool high);
  void SendLocked(const IoApicMessage& message);
  void SendLocked(const IoApicMessages& messages);
  // Makes the interrupts that counter 0 has raised by now happen.
  void CatchUpLocked(uint64_t now_ns);
  // When the timer next interrupts somebody; none if nobody listens.
  std::optional<uint64_t> NextTickNsLocked(uint64_t now_ns) const;
  // After any change: the INT pin, and the timer's thread.
  void PublishLocked();
  void PublishIntPinLocked();
  // Calls routes_changed if they have.
  void PublishRoutesLocked();

  const Outputs outputs_;
  std::mutex mutex_;  // guards what is below but for the atomics
  I8259 pic_;
  IoApic io_apic_;
  I8254 pit_;
  uint64_t caught_up_ns_ = 0;  // IRQ 0 is as the timer has it up to here
  std::optional<uint64_t> next_tick_ns_;
  std::array<uint64_t, kIoApicInputs> routes_ = {};  // the entries that routes_changed has seen
  bool stopping_ = false;
  std::condition_variable timer_changed_;
  std::atomic<bool> int_pin_{false};
  std::atomic<bool> timer_idle_{true};
  pthread_t thread_ = {};
  bool started_ = false;
};

}  // namespace sipi
