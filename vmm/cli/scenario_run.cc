#include "vmm/cli/scenario_run.h"

#include <utility>

#include "vmm/base/exit_codes.h"
#include "vmm/cli/host_info.h"
#include "vmm/cli/kvm_access.h"
#include "vmm/cli/messages.h"
#include "vmm/cli/outputs.h"
#include "vmm/cli/process_setup.h"
#include "vmm/report/trace_json.h"

namespace sipi {

std::optional<SerialOutput> OpenOutputs(const RawFlags& flags) {
  if (!OutputsWritable(flags)) return std::nullopt;
  absl::StatusOr<SerialOutput> serial = OpenSerial(flags.serial, "-");
  if (serial.ok()) return *std::move(serial);
  Say(serial.status());
  return std::nullopt;
}

std::optional<RunRecord> RunScenario(const CommandLine& line, const RunConfig& config,
                                     SerialOutput& serial, StopRequest& stop, int& status) {
  RunConfig own = config;
  serial.Set(own);
  absl::StatusOr<RunRecord> record = RunMachine(own, stop);
  if (!record.ok()) {
    Say(record.status());
    status = stop.signal() != 0 ? static_cast<int>(ExitCode::kSignalBase) + stop.signal()
                                : static_cast<int>(ExitCodeOf(record.status()));
    return std::nullopt;
  }
  serial.holds_old_bytes = false;
  record->host = HostInfoFor(config.machine);
  // These scenarios measure the guest's kernel code itself.
  if (config.machine == MachineKind::kKvm && !HostHasHardwareVirtualisation()) {
    record->notes.emplace_back(kEmulationNote);
  }
  if (!line.checked.note.empty()) record->notes.push_back(line.checked.note);
  return *std::move(record);
}

int ReportScenario(const CommandLine& line, const RunRecord& record, const ScenarioReport& report,
                   int failed) {
  const RawFlags& flags = line.flags;
  const bool stdout_is_data = flags.json == "-" || flags.trace == "-" || flags.html == "-";
  bool written = true;
  if (!flags.quiet && !stdout_is_data) written = Print(report.text());
  if (!flags.json.empty()) written &= WriteOutput(flags.json, report.json(), "--json");
  if (!flags.trace.empty()) written &= WriteOutput(flags.trace, TraceJson(record), "--trace");
  if (!flags.html.empty()) written &= WriteOutput(flags.html, report.page(), "--html");
  const int status = ExitStatus(record) != 0 ? ExitStatus(record) : failed;
  if (status != 0 && (flags.quiet || stdout_is_data) && !record.diagnosis.empty()) {
    Say(record.diagnosis);
  }
  return status == 0 && !written ? static_cast<int>(ExitCode::kError) : status;
}

}  // namespace sipi
