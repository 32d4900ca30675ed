// A CPU's registers after power-up, INIT and a Start-Up IPI, as plain values for a VMM to impose.
//
// Source: SDM vol 3A, table 10-1 "IA-32 and Intel 64 Processor States Following Power-up, Reset, or
// INIT" (table 9-1 before 2022) and 11.6.1 (Start Up).
//
// INIT keeps, and so nothing here names them: XCR0, MTRRs, PAT, the TSC and TSC_ADJUST, the x87,
// MMX, XMM and YMM contents with MXCSR, the caches, microcode, machine-check banks, performance
// counters, IA32_APIC_BASE, and every other MSR but EFER (FS and GS base go with their segments).
// Not modelled: BIST result in EAX, MPX, CET, debug-control and shadow-stack MSRs.
#pragma once

#include <cstdint>

#include "apic/regs/types.h"

namespace sipi::apic {

struct SegmentReset {
  uint16_t selector = 0;
  uint64_t base = 0;
  uint32_t limit = 0xffff;
  uint8_t access = 0x93;  // descriptor bits 47:40: present, DPL 0, data, read/write, accessed
};

struct TableReset {
  uint64_t base = 0;
  uint16_t limit = 0xffff;
};

struct CpuResetState {
  uint64_t rip = 0xfff0;
  uint64_t rflags = 2;
  uint64_t rdx = 0;  // family, model and stepping: CPUID 1 EAX
  // RAX, RBX, RCX, RSI, RDI, RBP, RSP and R8 to R15:
  uint64_t other_gprs = 0;

  uint64_t cr0 = 0x60000010;  // CD, NW, ET
  uint64_t cr2 = 0;
  uint64_t cr3 = 0;
  uint64_t cr4 = 0;
  uint64_t cr8 = 0;
  uint64_t efer = 0;

  uint64_t dr0_to_dr3 = 0;
  uint64_t dr6 = 0xffff0ff0;
  uint64_t dr7 = 0x400;

  SegmentReset cs = {0xf000, 0xffff0000, 0xffff, 0x9b};  // as data, but executable: see below
  SegmentReset data;                                     // DS, ES, FS, GS, SS
  SegmentReset ldtr = {0, 0, 0xffff, 0x82};              // LDT
  SegmentReset tr = {0, 0, 0xffff, 0x8b};                // busy TSS, which VM entry insists on
  TableReset gdtr;
  TableReset idtr;
};
// CS: the table says "read/write, accessed". In real mode the type has no effect, and VM entry
// without unrestricted guest wants a code segment; KVM resets it to 9BH too.

inline constexpr uint64_t kCr0Et = 1u << 4;
inline constexpr uint64_t kCr0Nw = 1u << 29;
inline constexpr uint64_t kCr0Cd = 1u << 30;

constexpr CpuResetState StateAfterPowerOn(uint32_t cpuid_signature) {
  CpuResetState state;
  state.rdx = cpuid_signature;
  return state;
}

// Table 10-1, note on CR0: "The CD and NW flags are unchanged, bit 4 is set to 1, all other bits
// are cleared." A BSP goes on from here at F000:FFF0 (linear FFFFFFF0H); an AP waits.
constexpr CpuResetState StateAfterInit(uint32_t cpuid_signature, uint64_t old_cr0) {
  CpuResetState state = StateAfterPowerOn(cpuid_signature);
  state.cr0 = kCr0Et | (old_cr0 & (kCr0Cd | kCr0Nw));
  return state;
}

// What a SIPI changes in a waiting CPU: it starts at 000VV000H, CS selector VV00H, IP 0. Vectors
// A0H to BFH are reserved (they point at the video memory and option ROMs, A0000H to BFFFFH); they
// start like any other.
struct StartupEntry {
  SegmentReset cs;
  uint64_t rip = 0;
};
constexpr StartupEntry EntryAfterSipi(Vector vector) {
  StartupEntry entry;
  entry.cs = CpuResetState().cs;
  entry.cs.selector = static_cast<uint16_t>(vector.value << 8);
  entry.cs.base = uint64_t{vector.value} << 12;
  return entry;
}

constexpr bool IsReservedSipiVector(Vector vector) {
  return vector.value >= 0xa0 && vector.value <= 0xbf;
}

}  // namespace sipi::apic
