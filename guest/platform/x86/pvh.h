// The PVH hand-over, as far as the guest reads it. Source: Xen public/arch-x86/hvm/start_info.h
// (the layout is the ABI).
#pragma once

#include <cstdint>

namespace sipi::platform {

inline constexpr uint32_t kHvmStartMagic = 0x336ec578;

struct HvmStartInfo {
  uint32_t magic;
  uint32_t version;
  uint32_t flags;
  uint32_t nr_modules;
  uint64_t modlist_paddr;
  uint64_t cmdline_paddr;
  uint64_t rsdp_paddr;
};

struct HvmModule {
  uint64_t paddr;
  uint64_t size;
  uint64_t cmdline_paddr;
  uint64_t reserved;
};

}  // namespace sipi::platform
