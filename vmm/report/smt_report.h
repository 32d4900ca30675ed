// `sipi smt`: SMT switches by each approach, side by side; the table and `sipi.smt/1`.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vmm/timeline/run_record.h"
#include "vmm/timeline/service_analysis.h"
#include "vmm/timeline/statistics.h"

namespace sipi {

// One direction of one approach, over all rounds.
struct SmtFigures {
  uint32_t switches = 0;
  uint32_t unfinished = 0;
  std::optional<Summary> ns;          // of those that ended
  std::array<int64_t, 3> waits = {};  // grace periods waited for, by kind: median over the rounds
  int64_t longest_hold_ns = 0;        // of all rounds
  uint32_t operations = 0;            // of all rounds: CPUs that went
  uint32_t failed = 0;                // of all rounds
  // The median of approach `none` divided by this one's; absent unless CPUs went in both.
  std::optional<double> ratio;
};

struct SmtRow {
  abi::SmtApproach approach = abi::SmtApproach::kNone;
  SmtFigures off;
  SmtFigures on;
  bool whole() const {
    return off.switches > 0 && on.switches == off.switches &&
           off.unfinished + on.unfinished + off.failed + on.failed == 0;
  }
};

// In the order in which the approaches were first taken.
std::vector<SmtRow> SmtRows(const std::vector<SmtSwitch>& switches);

// Every approach that was asked for switched every round both ways, no CPU failed, and no event was
// lost.
bool SmtComplete(const RunRecord& record, const std::vector<SmtRow>& rows);

// Times in ms. Ends in a newline.
std::string SmtTable(const RunRecord& record);
std::string SmtJson(const RunRecord& record);

}  // namespace sipi
