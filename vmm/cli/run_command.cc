// `sipi run`: one machine, its report, and the files that were asked for.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "vmm/base/exit_codes.h"
#include "vmm/cli/commands.h"
#include "vmm/cli/host_info.h"
#include "vmm/cli/kvm_access.h"
#include "vmm/cli/messages.h"
#include "vmm/cli/outputs.h"
#include "vmm/cli/process_setup.h"
#include "vmm/cli/serial_output.h"
#include "vmm/machine/run.h"
#include "vmm/report/hotplug_table.h"
#include "vmm/report/payload_table.h"
#include "vmm/report/run_json.h"
#include "vmm/report/run_table.h"
#include "vmm/report/trace_json.h"

namespace sipi {
namespace {

bool WriteOutputs(const RawFlags& flags, const RunRecord& record) {
  bool ok = true;
  // The report first, so that whoever watches need not wait for large files.
  const bool stdout_is_data = flags.json == "-" || flags.trace == "-";
  if (record.payload) {
    // Standard output is the guest's.
    if (!flags.quiet) SayText(PayloadTable(record));
  } else if (!flags.quiet && !stdout_is_data) {
    ok = Print(RunTable(record));
  }
  if (!flags.json.empty()) ok &= WriteOutput(flags.json, RunJson(record), "--json");
  if (!flags.trace.empty()) ok &= WriteOutput(flags.trace, TraceJson(record), "--trace");
  return ok;
}

}  // namespace

int RunCommand(const CommandLine& line) {
  const RawFlags& flags = line.flags;
  if (!OutputsWritable(flags)) return static_cast<int>(ExitCode::kUsage);
  const absl::StatusOr<SerialOutput> serial = OpenSerial(flags.serial, "-");
  if (!serial.ok()) {
    Say(serial.status());
    return static_cast<int>(ExitCode::kUsage);
  }
  RunConfig config = line.checked.config;
  serial->Set(config);

  StopRequest stop;
  const SignalsStop signals(stop);
  absl::StatusOr<RunRecord> record = RunMachine(config, stop);
  if (!record.ok()) {
    Say(record.status());
    if (stop.signal() != 0) return static_cast<int>(ExitCode::kSignalBase) + stop.signal();
    return static_cast<int>(ExitCodeOf(record.status()));
  }
  record->host = HostInfoFor(config.machine);
  if (!line.checked.note.empty()) record->notes.push_back(line.checked.note);
  const bool written = WriteOutputs(flags, *record);
  int status = ExitStatus(*record);
  // Every CPU is up in the end, and yet some did not go when it was asked to.
  if (status == 0 && !HotplugComplete(*record)) status = static_cast<int>(ExitCode::kPartial);
  if (status != 0 && flags.quiet && !record->diagnosis.empty()) Say(record->diagnosis);
  return status == 0 && !written ? static_cast<int>(ExitCode::kError) : status;
}

}  // namespace sipi
