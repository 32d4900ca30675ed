// One CPU of the machine: a thread of the host, and what others send it.
#pragma once

#include <atomic>
#include <cstdint>

#include "guest/platform/threads/machine.h"

namespace sipi::threads {

inline constexpr uint8_t kFirstVector = 0xe0;  // the guest's vectors lie in the 32 from here up
inline constexpr uint64_t kStackBytes = 256 * 1024;

// INIT and SIPI, as they reach a CPU.
inline constexpr uint32_t kInitSeen = 1;
inline constexpr uint32_t kStartupSeen = 2;

struct alignas(128) Cpu {
  // Others write these.
  std::atomic<uint32_t> pending{0};  // interrupts, bit by bit
  std::atomic<uint32_t> startup{0};  // kInitSeen, then kStartupSeen too
  std::atomic<uint32_t> halted{0};   // 1: waits in the host's kernel, on `pending` or `startup`

  // Its own.
  alignas(128) Machine* machine = nullptr;
  uint32_t number = 0;
  bool irqs = false;
  uint64_t timer_ticks = ~uint64_t{0};  // when its timer fires
  platform::Context host;               // the host thread's own stack
  platform::Context boot;               // the stack on which the CPU starts
  std::byte* boot_stack = nullptr;
};

// The CPU that this host thread is. May change at any poll.
inline Cpu& Here() {
  Cpu* cpu;
  asm volatile("movq %%fs:sipi_threads_running@tpoff+16, %0" : "=r"(cpu));
  return *cpu;
}

// Takes what interrupts there are, if they are enabled. Leaves for good where the machine has ended
// or the CPU has got an INIT.
void Poll();
// Waits in the host's kernel until something comes or the timer fires; may come back early.
void WaitForAnything(Cpu& cpu);
// Wakes a CPU that waits.
void Kick(Cpu& cpu);
void SendInterrupt(Cpu& cpu, Vector vector);
// Gives back what a sanitizer keeps for a context that will not be entered any more.
void DropContext(platform::Context& context);
// Enters `to`; the running context is not entered again.
[[noreturn]] void LeaveContextForGood(platform::Context& to);
// The stack is about to be used anew, or given back: AddressSanitizer must not hold its memory for
// the frames of a context that was left for good.
void ForgetFrames(const void* stack);
// Back to the host thread's own stack; never comes back.
[[noreturn]] void LeaveForGood(Cpu& cpu);

}  // namespace sipi::threads
