// What the commands of scenarios beyond bring-up have in common: run a machine, print a report,
// write files.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "vmm/cli/command_line.h"
#include "vmm/cli/serial_output.h"
#include "vmm/machine/run.h"
#include "vmm/timeline/run_record.h"

namespace sipi {

// Checks the files that are to be written, and opens the serial output. Nothing: it has been said
// why, and the exit status is ExitCode::kUsage.
std::optional<SerialOutput> OpenOutputs(const RawFlags& flags);

// Runs `config`, whose serial output goes behind what earlier runs wrote to `serial`. Nothing: it
// has been said why, and `status` is the process's exit status.
std::optional<RunRecord> RunScenario(const CommandLine& line, const RunConfig& config,
                                     SerialOutput& serial, StopRequest& stop, int& status);

// One report, as it goes to standard output and into files. Each is made only if it is wanted.
struct ScenarioReport {
  std::function<std::string()> text;
  std::function<std::string()> json;
  std::function<std::string()> page = nullptr;  // --html
};

// Prints and writes. `failed`: what the run's own exit status does not tell, such as CPUs that did
// not go off, and the status that it has. Returns the process's exit status: that of the run if
// that is not 0, then `failed`, then that of files that could not be written.
int ReportScenario(const CommandLine& line, const RunRecord& record, const ScenarioReport& report,
                   int failed);

}  // namespace sipi
