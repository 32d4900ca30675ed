// `sipi run`: one machine, its report, and the files that were asked for.
#include <filesystem>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "vmm/base/exit_codes.h"
#include "vmm/cli/commands.h"
#include "vmm/cli/host_info.h"
#include "vmm/cli/kvm_access.h"
#include "vmm/cli/messages.h"
#include "vmm/cli/process_setup.h"
#include "vmm/cli/serial_output.h"
#include "vmm/machine/run.h"
#include "vmm/report/file_writer.h"
#include "vmm/report/payload_table.h"
#include "vmm/report/run_json.h"
#include "vmm/report/run_table.h"
#include "vmm/report/trace_json.h"

namespace sipi {
namespace {

// The same file under whatever spelling. "-" and "none" are themselves.
bool SameFile(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return false;
  if (a == b) return true;
  if (a == "-" || b == "-") return false;
  std::error_code error;
  return std::filesystem::weakly_canonical(a, error) == std::filesystem::weakly_canonical(b, error);
}

// No two outputs go to one place. A payload writes to standard output unless it is told not to;
// sipi's own guest is silent there but for what a scenario prints.
absl::Status CheckOutputsDiffer(const RawFlags& flags) {
  const std::string serial = flags.serial.empty() && !flags.payload.empty() ? "-" : flags.serial;
  const std::tuple<const char*, const char*, bool> pairs[] = {
      {"--json", "--trace", SameFile(flags.json, flags.trace)},
      {"--json", "--serial", SameFile(flags.json, serial)},
      {"--trace", "--serial", SameFile(flags.trace, serial)},
  };
  for (const auto& [first, second, same] : pairs) {
    if (!same) continue;
    const bool by_default = flags.serial.empty() && std::string_view(second) == "--serial";
    return absl::InvalidArgumentError(
        absl::StrCat(first, " and ", second, by_default ? " (the payload's, by default)" : "",
                     " both name ", std::string_view(first) == "--json" ? flags.json : flags.trace,
                     "; give each its own file"));
  }
  return absl::OkStatus();
}

// Asks whether each file that is to be written later can be: a long run should not fail at its end.
bool OutputsWritable(const RawFlags& flags) {
  if (const absl::Status differ = CheckOutputsDiffer(flags); !differ.ok()) {
    Say(differ);
    return false;
  }
  for (const auto& [path, flag] :
       {std::pair(&flags.json, "--json"), std::pair(&flags.trace, "--trace")}) {
    if (path->empty()) continue;
    const absl::Status writable = CheckResultFile(*path, flag);
    if (writable.ok()) continue;
    Say(writable);
    return false;
  }
  return true;
}

bool WriteOutputs(const RawFlags& flags, const RunRecord& record) {
  bool ok = true;
  const auto write = [&ok](const std::string& path, const std::string& content, const char* flag) {
    const absl::Status written = WriteResultFile(path, content, flag);
    if (written.ok()) return;
    Say(written);
    ok = false;
  };
  // The report first, so that whoever watches need not wait for large files.
  const bool stdout_is_data = flags.json == "-" || flags.trace == "-";
  if (record.payload) {
    // Standard output is the guest's.
    if (!flags.quiet) SayText(PayloadTable(record));
  } else if (!flags.quiet && !stdout_is_data) {
    ok = Print(RunTable(record));
  }
  if (!flags.json.empty()) write(flags.json, RunJson(record), "--json");
  if (!flags.trace.empty()) write(flags.trace, TraceJson(record), "--trace");
  return ok;
}

}  // namespace

int RunCommand(const CommandLine& line) {
  const RawFlags& flags = line.flags;
  if (!OutputsWritable(flags)) return static_cast<int>(ExitCode::kUsage);
  const absl::StatusOr<UniqueFd> serial = OpenSerial(flags.serial, "-");
  if (!serial.ok()) {
    Say(serial.status());
    return static_cast<int>(ExitCode::kUsage);
  }
  RunConfig config = line.checked.config;
  config.serial_fd = serial->get();

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
  const int status = ExitStatus(*record);
  if (status != 0 && flags.quiet && !record->diagnosis.empty()) Say(record->diagnosis);
  return status == 0 && !written ? static_cast<int>(ExitCode::kError) : status;
}

}  // namespace sipi
