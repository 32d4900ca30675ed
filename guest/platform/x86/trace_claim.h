// How a CPU takes the next record of its own trace ring (guest/abi/trace.h), and what keeps that
// whole where a thread loses its CPU in the middle.
//
// Two instructions of one CPU: XADD takes the record, CMP looks whether it still lies in the ring.
// A thread that is preempted between them and goes on elsewhere would hold its record against
// another CPU's ring: it would leave it empty, or write beyond the end of a full ring. Guarding
// them would cost each event more than they do themselves. So whoever preempts finishes the CMP
// first, on the CPU that has done the XADD.
#pragma once

#include <cstdint>

#include "guest/abi/percpu.h"

namespace sipi::platform {

struct TraceClaim {
  uint64_t at;  // the record's address
  bool full;    // it lies beyond the ring: not to be written, the cursor counts it as lost
};

// The running CPU's. GS has its PerCpuHeader. The register must be RCX: see FinishTraceClaim.
[[gnu::always_inline]] inline TraceClaim ClaimTraceRecord() {
  uint64_t at = sizeof(abi::TraceRecord);
  bool full;
  asm volatile("xaddq %0, %%gs:0; cmpq %%gs:8, %0" : "+c"(at), "=@ccae"(full)::"memory");
  return {at, full};
}

// CMP RCX, GS:[8] as the assembler writes it above (SDM vol 2A, CMP and 2.1: GS prefix, REX.W, 3B,
// ModRM with a SIB byte of neither base nor index, 32-bit displacement).
inline constexpr uint8_t kTraceClaimCompare[] = {0x65, 0x48, 0x3b, 0x0c, 0x25, 8, 0, 0, 0};

// For code that was interrupted at `rip` with these registers and is about to lose the CPU whose
// ring ends at `ring_end`. Does ClaimTraceRecord's comparison in its place if that is what comes
// next, else nothing: sets CF, all that is asked of it afterwards, and steps over it.
inline void FinishTraceClaim(uint64_t& rip, uint64_t rcx, uint64_t& rflags, uint64_t ring_end) {
  const auto* code = reinterpret_cast<const uint8_t*>(rip);
  for (const uint8_t each : kTraceClaimCompare) {
    if (*code++ != each) return;
  }
  constexpr uint64_t kCarry = 1;  // RFLAGS.CF: below
  rflags = (rflags & ~kCarry) | (rcx < ring_end ? kCarry : 0);
  rip += sizeof(kTraceClaimCompare);
}

}  // namespace sipi::platform
