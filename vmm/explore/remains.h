// What an explored run leaves, as the checks look at it.
#pragma once

#include <algorithm>
#include <span>
#include <string>

#include "guest/abi/percpu.h"
#include "vmm/explore/explore_case.h"

namespace sipi {

// What the guest left, read as what it is: it is this very program.
class Remains {
 public:
  Remains(const ExploreCase& explored, const ArenaLayout& arena, const sim::Simulator& simulator)
      : explored_(explored), arena_(arena), simulator_(simulator) {}

  uint32_t cpus() const { return explored_.config.cpus; }
  const abi::CpuSlot& slot(uint32_t cpu) const {
    return reinterpret_cast<const abi::CpuSlot*>(simulator_.base() + arena_.slots.value)[cpu];
  }
  const abi::ResultPage& result() const {
    return *reinterpret_cast<const abi::ResultPage*>(simulator_.base() + arena_.result.value);
  }
  std::span<const abi::TraceRecord> ring(uint32_t cpu) const {
    const auto& header = *reinterpret_cast<const abi::PerCpuHeader*>(
        simulator_.base() + arena_.percpu.value + uint64_t{cpu} * arena_.percpu_stride_bytes);
    const auto* begin = reinterpret_cast<const abi::TraceRecord*>(header.ring_begin);
    if (begin == nullptr) return {};
    const uint64_t end = std::min(header.ring_cursor, header.ring_end);
    return {begin, (end - header.ring_begin) / sizeof(abi::TraceRecord)};
  }
  // Something was done to it that may keep it from coming up, while there are faults.
  bool harmed(uint32_t cpu) const { return impeded(cpu) || explored_.doomed_cpu == cpu; }
  // It may be waited for in vain: not where it is a step that fails.
  bool late(uint32_t cpu) const {
    const bool step = explored_.config.fault.kind == abi::Fault::kFailStep;
    return impeded(cpu) || (explored_.doomed_cpu == cpu && !step);
  }
  // Some CPU may still be on its way, up or down: dead, late, or cancelled by the control CPU. One
  // whose own ONLINE step failed has undone everything before it says so.
  bool unsettled() const {
    for (uint32_t cpu = 1; cpu < cpus(); ++cpu) {
      if (impeded(cpu)) return true;
    }
    constexpr auto kFirstOnlineStep = static_cast<uint64_t>(abi::CpuhpState::kApOnlineIdle);
    const abi::FaultSpec& fault = explored_.config.fault;
    const bool undone = fault.kind == abi::Fault::kFailStep && fault.value >= kFirstOnlineStep;
    return explored_.doomed_cpu && !undone;
  }
  const ExploreCase& explored() const { return explored_; }
  const sim::Simulator& simulator() const { return simulator_; }

 private:
  // By a fault of the machine, or by a bound that is too short for anybody. The boot CPU is up.
  bool impeded(uint32_t cpu) const {
    return cpu != 0 && (simulator_.Harmed(CpuNumber(cpu)) || explored_.short_bound);
  }

  const ExploreCase& explored_;
  const ArenaLayout& arena_;
  const sim::Simulator& simulator_;
};

// Empty if the guest ended by itself and says that it is done.
std::string CheckEnd(const Remains& remains, const sim::End& end);

// Empty if the CPU took its steps one after the other, and undid in reverse order what it had done.
std::string CheckSteps(const Remains& remains, uint32_t cpu);

}  // namespace sipi
