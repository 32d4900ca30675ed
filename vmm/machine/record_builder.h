// Builds the record of a run that is over: from the machine, and from what the guest left in its
// memory. The guest's memory is read with suspicion: a guest may have gone wild.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "guest/abi/percpu.h"
#include "vmm/load/params.h"
#include "vmm/machine/machine.h"
#include "vmm/machine/run_config.h"
#include "vmm/timeline/run_record.h"

namespace sipi {

// What a run leaves behind, whichever machine it was.
struct Remains {
  std::span<const abi::CpuSlot> slots;
  const abi::ResultPage* result = nullptr;
  std::optional<abi::TortureCounters> torture;  // none: a kernel without services
  std::vector<GuestRing> rings;
  std::vector<HostTrack> tracks;
  TscClock clock;
  uint64_t lost_side_events = 0;
  std::map<std::string, uint64_t> counters;
  OutputSummary serial;
  std::vector<std::string> notes;
  std::function<std::string(CpuNumber)> doing;      // at the end; asked where that matters
  std::function<uint64_t(CpuNumber)> instructions;  // asked if config.count_instructions
};

// RunRecord::host stays empty: the caller knows the host.
RunRecord RecordOf(const RunConfig& config, const RunEnd& end, const Remains& remains);

// After machine.Run. RunRecord::host stays empty: the caller knows the host. Errors: OutOfRange if
// `arena` is not in the machine's memory.
absl::StatusOr<RunRecord> BuildRecord(const RunConfig& config, const ArenaLayout& arena,
                                      const RunEnd& end, Machine& machine);

}  // namespace sipi
