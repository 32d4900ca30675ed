// Numbers that the assembler files share with C++. Macros only; machine.cc asserts that they are
// what C++ has.
#pragma once

#define SIPI_TRAMPOLINE_PAGE 0x8000           // abi::kTrampolineGpa
#define SIPI_TRAMPOLINE_PARAMS 0xf00          // kTrampolineParamsOffset
#define SIPI_APIC_HASH_MULTIPLIER 0x9e3779b9  // abi::kApicHashMultiplier
#define SIPI_YIELD_PORT 0x80                  // abi::kYieldPort
#define SIPI_WAKE_VECTOR 0xf0                 // abi::kWakeVector
#define SIPI_RESULT_HOLDER 24                 // offsetof(abi::ResultPage, trampoline_holder)
#define SIPI_RESULT_UNKNOWN_COUNT 292         // ... unknown_apic_ids
#define SIPI_RESULT_UNKNOWN_ID 296            // ... unknown_apic_id
#define SIPI_PERCPU_SELF 24                   // offsetof(abi::PerCpuHeader, self)
