// A simulated machine that runs a few lines of a test instead of the guest kernel. What the CPUs
// share, and what the test reads afterwards, is a State in the machine's memory.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <string>

#include "guest/kernel/kernel.h"
#include "guest/platform/sim/machine.h"

namespace sipi::sim {

inline Options OptionsFor(uint32_t cpus, uint64_t seed = 1) {
  Options options;
  for (uint32_t i = 0; i < cpus; ++i) {
    CpuPlace place;
    place.apic_id = ApicId(i);
    options.cpus.push_back(place);
  }
  options.seed = seed;
  options.memory_bytes = abi::kArenaGpa + (1 << 20);
  return options;
}

template <class State>
class ProgramMachine {
 public:
  ProgramMachine(Options options, const Program& program,
                 abi::ApicMode mode = abi::ApicMode::kX2Apic)
      : machine_(std::move(options), program) {
    std::string error;
    EXPECT_TRUE(machine_.Reserve(&error)) << error;
    auto& params = *new (machine_.memory().base() + abi::kParamsGpa) abi::BootParams;
    params.apic_mode = static_cast<uint8_t>(mode);
    new (machine_.memory().base() + abi::kArenaGpa) State;
    machine_.ticks_per_ms = machine_.options().tsc_khz;
  }

  Machine& machine() { return machine_; }
  State& state() { return Of(machine_); }
  static State& Of(Machine& machine) {
    return *reinterpret_cast<State*>(machine.memory().base() + abi::kArenaGpa);
  }
  End Run() { return machine_.Run(); }

 private:
  Machine machine_;
};

inline void NoInterrupt(Cpu& cpu, Vector vector) {
  ADD_FAILURE() << "CPU " << cpu.number << " was interrupted at " << int{vector.value};
  platform::ApicWrite(apic::Reg::kEoi, 0);
}
inline void JustEoi(Cpu&, Vector) { platform::ApicWrite(apic::Reg::kEoi, 0); }

// What an x2APIC guest writes.
inline void SendIcr(apic::DeliveryMode mode, uint8_t vector, uint32_t dest,
                    apic::Shorthand shorthand = apic::Shorthand::kNone) {
  const apic::Icr icr{Vector(vector), mode, shorthand, false, true, false, dest};
  platform::ApicWriteIcr(icr.Low(), dest);
}
inline void SendInit(uint32_t dest) { SendIcr(apic::DeliveryMode::kInit, 0, dest); }
inline void SendSipi(uint8_t vector, uint32_t dest) {
  SendIcr(apic::DeliveryMode::kStartUp, vector, dest);
}
inline void EnableApic() {
  platform::ApicWrite(apic::Reg::kSvr, apic::kSvrEnable | abi::kSpuriousVector);
}

// A State's words are plain, so that a test can read them afterwards; CPUs use them so.
inline platform::AtomicRef<uint32_t> Shared(uint32_t& word) {
  return platform::AtomicRef<uint32_t>(word);
}
inline uint32_t Increment(uint32_t& word) {
  return Shared(word).FetchAdd(1, std::memory_order_seq_cst);
}
inline bool WaitForValue(uint32_t& word, uint32_t value, uint64_t us) {
  return platform::SpinUntil(
      Shared(word), [value](uint32_t now) { return now == value; }, platform::DeadlineInUs(us));
}

// Ends the run as a guest would.
[[noreturn]] inline void EndRun(Cpu& cpu) {
  cpu.machine.Finish(cpu, {EndKind::kGuestExit, CpuNumber(cpu.number), 0, {}});
}

}  // namespace sipi::sim
