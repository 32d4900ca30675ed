// `sipi compare`: several strategies, run alternately, in one table.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "vmm/base/errno_status.h"
#include "vmm/base/exit_codes.h"
#include "vmm/base/status_macros.h"
#include "vmm/cli/commands.h"
#include "vmm/cli/host_info.h"
#include "vmm/cli/kvm_access.h"
#include "vmm/cli/messages.h"
#include "vmm/cli/outputs.h"
#include "vmm/cli/process_setup.h"
#include "vmm/cli/progress.h"
#include "vmm/cli/serial_output.h"
#include "vmm/cli/strategy_flag.h"
#include "vmm/machine/run.h"
#include "vmm/report/compare.h"
#include "vmm/report/compare_json.h"
#include "vmm/report/compare_table.h"
#include "vmm/report/file_writer.h"
#include "vmm/report/run_json.h"
#include "vmm/timeline/strategy_name.h"

namespace sipi {
namespace {

constexpr char kRunFilePrefix[] = "run-";
constexpr char kRunFileSuffix[] = ".json";
constexpr char kRunsDirRemedy[] = "name a directory that can be made, or written to";

// Makes the directory of --runs-dir, or makes sure that files can be made in it.
absl::Status MakeRunsDir(const std::string& dir) {
  if (mkdir(dir.c_str(), 0777) == 0) return absl::OkStatus();
  if (errno != EEXIST) {
    return ErrnoStatus(errno, absl::StrCat("--runs-dir: cannot make ", dir), kRunsDirRemedy);
  }
  struct stat status;
  if (stat(dir.c_str(), &status) == 0 && !S_ISDIR(status.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--runs-dir: ", dir, " is no directory; ", kRunsDirRemedy));
  }
  if (access(dir.c_str(), W_OK | X_OK) == 0) return absl::OkStatus();
  return ErrnoStatus(errno, absl::StrCat("--runs-dir: cannot write to ", dir), kRunsDirRemedy);
}

// Of the files that --runs-dir, which exists by now, will hold.
bool IsRunFile(const std::string& path, const std::string& dir) {
  namespace fs = std::filesystem;
  if (path.empty() || path == "-") return false;
  std::error_code error;
  const fs::path file = fs::weakly_canonical(fs::absolute(path, error), error);
  const std::string name = file.filename().string();
  return file.parent_path() == fs::canonical(dir, error) &&
         absl::StartsWith(name, kRunFilePrefix) && absl::EndsWith(name, kRunFileSuffix);
}

absl::Status CheckRunsDir(const CommandLine& line, const std::string& serial) {
  const std::string& dir = line.compare.runs_dir;
  if (dir.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(MakeRunsDir(dir));
  std::vector<NamedFile> others = InputsOf(line.flags);
  others.push_back({"--json", line.flags.json});
  others.push_back({"--serial", serial});
  for (const NamedFile& other : others) {
    if (!IsRunFile(other.path, dir)) continue;
    return absl::InvalidArgumentError(absl::StrCat(other.flag, ": ", other.path,
                                                   " is named like a file of --runs-dir, and would "
                                                   "be one; give it another name"));
  }
  return absl::OkStatus();
}

absl::Status CheckOutputs(const CommandLine& line) {
  const RawFlags& flags = line.flags;
  const std::string serial = flags.serial == "none" ? "" : flags.serial;
  RETURN_IF_ERROR(CheckFilesApart({{"--json", flags.json}, {"--serial", serial}}, InputsOf(flags)));
  RETURN_IF_ERROR(CheckRunsDir(line, serial));
  return flags.json.empty() ? absl::OkStatus() : CheckResultFile(flags.json, "--json");
}

// Runs everything and remembers what the exit status must tell.
class Comparer {
 public:
  Comparer(const CommandLine& line, StopRequest& stop, const SerialOutput& serial)
      : line_(line),
        stop_(stop),
        config_(line.checked.config),
        host_(HostInfoFor(config_.machine)),
        comparison_(line.compare.baseline),
        progress_(2, !line.flags.quiet) {
    serial.Set(config_);
  }

  // All runs, alternating: each round takes every strategy once, beginning with another one each
  // time, so that whatever drifts on the host (clocks, caches, other load) meets them all alike.
  // Error: what let no guest run, or a run's file that could not be written; it has been said.
  absl::Status RunAll() {
    const size_t count = line_.compare.strategies.size();
    for (uint32_t round = 0; round < line_.compare.runs; ++round) {
      for (size_t i = 0; i < count; ++i) {
        if (stop_.signal() != 0) return absl::OkStatus();
        RETURN_IF_ERROR(RunOne(line_.compare.strategies[(i + round) % count], round));
      }
    }
    return absl::OkStatus();
  }

  const Comparison& comparison() const { return comparison_; }
  uint32_t runs_done() const { return runs_done_; }
  int exit_status() const { return exit_status_; }
  ProgressLine& progress() { return progress_; }

 private:
  absl::Status RunOne(const sequence::Strategy& strategy, uint32_t round) {
    const std::string name = StrategyName(strategy);
    const size_t total = line_.compare.strategies.size() * line_.compare.runs;
    progress_.Show(absl::StrFormat("[%d/%d] %s, round %d of %d, %d CPUs", runs_done_ + 1, total,
                                   name, round + 1, line_.compare.runs, config_.cpus));
    config_.strategy = strategy;
    // The same jitter for every strategy of a round, another one in the next.
    config_.seed = line_.checked.config.seed + round;
    absl::StatusOr<RunRecord> record = RunMachine(config_, stop_);
    if (!record.ok()) {
      if (stop_.signal() != 0) return absl::OkStatus();
      progress_.Clear();
      Say(absl::StrCat(name, ", run ", round + 1, ": ", record.status().message()));
      return record.status();
    }
    config_.empty_serial_file = false;  // the runs' output stands there one behind the other
    if (record->outcome == Outcome::kInterrupted) return absl::OkStatus();
    record->host = host_;
    ++runs_done_;
    Judge(*record, round);
    absl::Status kept = Keep(*record, round);
    if (!kept.ok()) {
      Say(kept);
      return kept;
    }
    comparison_.Add(*std::move(record));
    return absl::OkStatus();
  }

  // A run that is not complete is said at once, and makes the command fail: the worst outcome
  // counts, and missing CPUs are the mildest.
  void Judge(const RunRecord& record, uint32_t round) {
    const int status = ExitStatus(record);
    if (status == 0) return;
    progress_.Clear();
    Say(absl::StrCat(record.strategy, ", run ", round + 1, ": ", record.cpus_online, " of ",
                     record.cpus_offered, " CPUs online", record.diagnosis.empty() ? "" : ": ",
                     record.diagnosis));
    if (exit_status_ == 0 || exit_status_ == static_cast<int>(ExitCode::kPartial)) {
      exit_status_ = status;
    }
  }

  absl::Status Keep(const RunRecord& record, uint32_t round) {
    if (line_.compare.runs_dir.empty()) return absl::OkStatus();
    const std::string path =
        absl::StrFormat("%s/%s%03d-%s%s", line_.compare.runs_dir, kRunFilePrefix, round + 1,
                        record.strategy, kRunFileSuffix);
    return WriteResultFile(path, RunJson(record), "--runs-dir");
  }

  const CommandLine& line_;
  StopRequest& stop_;
  RunConfig config_;
  const HostInfo host_;
  Comparison comparison_;
  ProgressLine progress_;
  uint32_t runs_done_ = 0;
  int exit_status_ = 0;
};

// Prints and writes what there is; whether that worked.
bool WriteResults(const CommandLine& line, const Comparison& comparison) {
  bool ok = true;
  if (!line.flags.quiet && line.flags.json != "-") ok = Print(CompareTable(comparison));
  if (!line.flags.json.empty()) {
    const absl::Status written =
        WriteResultFile(line.flags.json, CompareJson(comparison), "--json");
    if (!written.ok()) {
      Say(written);
      ok = false;
    }
  }
  return ok;
}

}  // namespace

int CompareCommand(const CommandLine& line) {
  const absl::Status outputs = CheckOutputs(line);
  const absl::StatusOr<SerialOutput> serial =
      outputs.ok() ? OpenSerial(line.flags.serial, "none") : outputs;
  if (!serial.ok()) {
    Say(serial.status());
    return static_cast<int>(ExitCode::kUsage);
  }

  StopRequest stop;
  const SignalsStop signals(stop);
  Comparer comparer(line, stop, *serial);
  const absl::Status ran = comparer.RunAll();
  comparer.progress().Clear();
  if (comparer.runs_done() == 0 && !ran.ok()) return static_cast<int>(ExitCodeOf(ran));
  if (stop.signal() != 0) {
    Say(absl::StrCat("interrupted after ", comparer.runs_done(), " of ",
                     line.compare.strategies.size() * line.compare.runs,
                     " runs; the table has these only"));
  }
  const bool written = comparer.runs_done() == 0 || WriteResults(line, comparer.comparison());
  if (stop.signal() != 0) return static_cast<int>(ExitCode::kSignalBase) + stop.signal();
  if (!ran.ok()) return static_cast<int>(ExitCodeOf(ran));
  if (comparer.exit_status() != 0) return comparer.exit_status();
  return written ? 0 : static_cast<int>(ExitCode::kError);
}

}  // namespace sipi
