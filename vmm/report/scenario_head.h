// What the texts of all scenarios beyond bring-up begin and end with.
#pragma once

#include <string>
#include <vector>

#include "vmm/timeline/run_record.h"

namespace sipi {

// Where figures come from, in two lines at most: the host (none of a simulated run); CPUs, whether
// simulated, irqchip, APIC mode, profile, seed, and the kernel's knobs that decide about RCU.
std::string ScenarioHead(const RunRecord& record);

// The knobs among them: "HZ=250, preempt full, RCU preemptible".
std::string KernelText(const abi::KernelKnobs& kernel);

// Why not all that was asked for was done, for people: "partial: not all CPUs came up". Of a run
// that a report takes for incomplete.
std::string PartialText(const RunRecord& record);

// PartialText if it is not `complete`, the diagnosis, and the notes: a line each.
std::string ScenarioRemarks(const RunRecord& record, bool complete);
// Of several runs: each line once, in the order in which they come first. `complete` is by run.
std::string ScenarioRemarks(const std::vector<RunRecord>& records,
                            const std::vector<bool>& complete);

}  // namespace sipi
