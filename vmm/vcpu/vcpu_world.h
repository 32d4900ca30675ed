// What all vCPU threads of one machine share, and whom they tell what happens.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "apic/regs/types.h"
#include "guest/abi/boot_params.h"
#include "guest/abi/layout.h"
#include "vmm/board/board.h"
#include "vmm/device/port_bus.h"
#include "vmm/irqchip/idle_ledger.h"
#include "vmm/irqchip/user_irqchip.h"
#include "vmm/kvm/linux_kvm.h"
#include "vmm/memory/guest_memory.h"
#include "vmm/profile/profile.h"

namespace sipi {

// Changes a CPU's state after reset to that at some entry.
using StateChange = std::function<void(kvm_regs&, kvm_sregs&)>;

// Called on vCPU threads; each may be called by many at once.
class VcpuEvents {
 public:
  virtual ~VcpuEvents() = default;
  // The guest wrote `value` to the exit port.
  virtual void OnGuestExit(CpuNumber cpu, uint32_t value) = 0;
  // This vCPU cannot go on; `diagnosis` says why.
  virtual void OnFault(CpuNumber cpu, std::string diagnosis) = 0;
  // May hold the CPU for as long as it does not return.
  virtual void OnDoorbell(CpuNumber cpu, abi::Doorbell bell) = 0;
  // Every vCPU is blocked for good.
  virtual void OnAllIdle() = 0;
  // The board asks for INIT# of every CPU.
  virtual void OnInitLine(CpuNumber cpu) = 0;
  // The guest resets the machine by way of that port.
  virtual void OnSystemReset(CpuNumber cpu, uint32_t port) = 0;
  // The firmware asks for the payload: `enter` takes its entry state. Error: it cannot be loaded.
  using EnterState = std::function<absl::Status(const StateChange& change)>;
  virtual absl::Status OnFirmware(const EnterState& enter) = 0;
  virtual void OnFlushPage(Gpa page) = 0;
};

// Constant once the threads run, but for `memory`.
struct VcpuWorld {
  VcpuEvents* events = nullptr;
  PortBus* ports = nullptr;
  Board* board = nullptr;  // other people's guests only
  // For fault reports. Null until the guest is loaded, which some threads do not wait for.
  std::atomic<const GuestMemory*> memory{nullptr};
  UserIrqchip* chip = nullptr;  // irqchip user only, as is the next
  IdleLedger* ledger = nullptr;
  Profile profile;
  abi::FaultSpec fault;
  uint64_t seed = 1;
  uint32_t tsc_khz = 0;
  int64_t tsc_offset = 0;        // guest TSC - host TSC
  kvm_sregs reset_sregs = {};    // of a vCPU that has not run
  uint32_t sync_regs = 0;        // KvmFacts::sync_regs
  uint32_t cpuid_signature = 0;  // CPUID 1 EAX: DX after reset
  abi::ApicMode apic_mode = abi::ApicMode::kX2Apic;
  bool has_x2apic = true;
  bool has_tsc_deadline = true;
  uint32_t phys_addr_bits = 46;   // CPUID 80000008H EAX[7:0]
  bool firmware_present = false;  // there is code at F000:FFF0
  // Tests: nanoseconds for which a CPU's thread is held before it does anything. Null: none.
  std::function<uint64_t(CpuNumber)> thread_delay_ns;
};

}  // namespace sipi
