// What each platform's start has from the VMM, before KernelMain.
#pragma once

#include <cstdint>

#include "guest/abi/boot_params.h"
#include "guest/kernel/kernel.h"

namespace sipi {

// Points `kernel` at the tables and pages that `params` names, whose addresses this platform can
// use as they are, and puts the ABI's mark on the result page: from then on the VMM believes what
// stands there. On the boot CPU, before any other runs.
inline void TakeBootParams(Kernel& kernel, const abi::BootParams& params) {
  const uint64_t base = reinterpret_cast<uint64_t>(&params);
  kernel.params = &params;
  kernel.cpus = reinterpret_cast<const abi::CpuEntry*>(base + params.cpu_table_offset);
  kernel.order = reinterpret_cast<const uint32_t*>(base + params.order_offset);
  kernel.slots = reinterpret_cast<abi::CpuSlot*>(params.slots_gpa);
  kernel.result = reinterpret_cast<abi::ResultPage*>(params.result_gpa);
  kernel.result->magic = abi::kBootParamsMagic;
  kernel.result->version = abi::kAbiVersion;
}

}  // namespace sipi
