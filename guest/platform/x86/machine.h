// What the assembler files and the C++ of the x86 platform share.
#pragma once

#include <cstdint>

#include "guest/kernel/kernel.h"

namespace sipi::platform {

// Parameters of the AP trampoline, at a fixed place in its page (trampoline.S).
struct TrampolineParams {
  uint32_t lock;      // bit 0: taken
  uint32_t use_lock;  // knob
  uint32_t cr3;
  uint32_t want_x2apic;  // switch the AP to x2APIC mode before its ID is read
  uint32_t id_source;    // abi::ApIdSource
  uint32_t hash_shift;   // 32 - apic_hash_bits
  uint32_t hash_mask;
  uint32_t stride_bytes;  // of the per-CPU blocks
  uint64_t hash;          // ApicHashEntry[]
  uint64_t percpu;        // per-CPU blocks
  uint64_t kernel;        // Kernel*
  uint64_t result;        // ResultPage*
};
inline constexpr uint64_t kTrampolineParamsOffset = 0xf00;
static_assert(sizeof(TrampolineParams) == 64);

// What the interrupt stubs (entry.S) leave on the stack: the registers that a C++ function may
// change, vector, error code, and what the CPU has pushed. What stands here is taken back by IRET.
struct InterruptFrame {
  uint64_t r11, r10, r9, r8, rdi, rsi, rdx, rcx, rax;
  uint64_t vector;
  uint64_t error_code;
  uint64_t rip;
  uint64_t cs;
  uint64_t rflags;
  uint64_t rsp;
  uint64_t ss;
};

}  // namespace sipi::platform

extern "C" {
[[noreturn]] void SipiBootMain(uint32_t start_info, uint64_t boot_entry_ticks);
[[noreturn]] void SipiApMain(sipi::Kernel* kernel, sipi::PerCpu* self,
                             uint64_t first_instruction_ticks);
void SipiInterrupt(sipi::platform::InterruptFrame* frame);  // by the stubs, interrupts off
void sipi_thread_start();  // switch.S: where a new thread's first switch returns to

extern const unsigned char sipi_trampoline_image[];  // the page, as linked into the image
extern const unsigned char sipi_trampoline_image_end[];
extern const uint64_t sipi_pml4[];
extern const unsigned char sipi_idt_descriptor[];
}
