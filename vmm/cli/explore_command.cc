// `sipi explore`: a campaign over schedules and faults, the replay of one seed, the merging of
// shards.
#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "vmm/base/exit_codes.h"
#include "vmm/base/status_macros.h"
#include "vmm/base/text_file.h"
#include "vmm/cli/commands.h"
#include "vmm/cli/flag_values.h"
#include "vmm/cli/kvm_access.h"
#include "vmm/cli/messages.h"
#include "vmm/cli/outputs.h"
#include "vmm/cli/process_setup.h"
#include "vmm/cli/progress.h"
#include "vmm/explore/campaign_merge.h"
#include "vmm/explore/campaign_state.h"
#include "vmm/explore/explorer.h"
#include "vmm/explore/saved_case.h"
#include "vmm/report/file_writer.h"

namespace sipi {
namespace {

constexpr uint64_t kMaxStateBytes = 16 << 20;
constexpr size_t kTraceEvents = 60;

// What a person needs: the case, made small, and its end. `small_case`, if not null, gets it.
// Error: the host has no room for it.
absl::StatusOr<std::string> Report(uint64_t seed, const ExploreSpace& space,
                                   std::optional<SavedCase>* small_case = nullptr) {
  Explorer explorer;
  const ExploreCase found = CaseOf(seed, space);
  std::string wrong = explorer.Run(found);
  RETURN_IF_ERROR(explorer.host_error());
  if (wrong.empty()) return absl::StrCat(Describe(found), "\n  nothing is wrong\n");
  std::string text = absl::StrCat(Describe(found), "\n  ", wrong, "\n");
  std::vector<std::string> left_out;
  const ExploreCase small = explorer.Shrink(found, &wrong, &left_out);
  if (small_case != nullptr) *small_case = MakeSavedCase(seed, space, left_out);
  absl::StrAppend(&text, "made small: ", Describe(small), "\n  ", wrong, "\n",
                  explorer.Trace(small, kTraceEvents));
  return text;
}

struct CaseReport {
  std::string text;
  bool failing = false;
};

int PrintReport(const CaseReport& report) {
  if (!Print(report.text)) return static_cast<int>(ExitCode::kError);
  return static_cast<int>(report.failing ? ExitCode::kGuestFault : ExitCode::kOk);
}

// --save writes failing cases only: one that is right needs no more than its seed.
std::string NothingToSave(const std::string& path) {
  return absl::StrCat("--save: no case fails, so ", path, " is not written\n");
}

// A seed's report; a failing case goes to `path`, if that is not empty.
absl::StatusOr<CaseReport> ReportAndSave(uint64_t seed, const ExploreSpace& space,
                                         const std::string& path) {
  std::optional<SavedCase> saved;
  ASSIGN_OR_RETURN(std::string text, Report(seed, space, &saved));
  if (!path.empty() && saved) {
    RETURN_IF_ERROR(WriteResultFile(path, SavedCaseJson(*saved), "--save"));
  } else if (!path.empty()) {
    absl::StrAppend(&text, NothingToSave(path));
  }
  return CaseReport{std::move(text), saved.has_value()};
}

int ReplaySeed(const ExploreFlags& flags) {
  const absl::StatusOr<CaseReport> report =
      ReportAndSave(*flags.replay, flags.plan.space, flags.save_file);
  if (report.ok()) return PrintReport(*report);
  Say(report.status());
  return static_cast<int>(ExitCode::kError);
}

// What is wrong with a file is the user's; want of room is the host's.
int SayCannotBegin(const absl::Status& status) {
  Say(status);
  return static_cast<int>(absl::IsResourceExhausted(status) ? ExitCode::kError : ExitCode::kUsage);
}

// The contents of the file that `flag` names. Errors name both, and keep their code.
absl::StatusOr<std::string> ReadFlagsFile(const std::string& flag, const std::string& path) {
  absl::StatusOr<std::string> text = ReadTextFile(path, kMaxStateBytes);
  if (text.ok()) return text;
  return absl::Status(text.status().code(), absl::StrCat(flag, ": ", text.status().message()));
}

absl::StatusOr<CaseReport> ReportOfFile(const std::string& path, uint32_t canary) {
  ASSIGN_OR_RETURN(const std::string text, ReadFlagsFile("--replay", path));
  absl::StatusOr<SavedCase> saved = ParseSavedCase(text, path);
  if (!saved.ok()) return FlagError("--replay", std::string(saved.status().message()));
  saved->space.canary = canary;
  const std::string note = OtherBuildsNote(*saved, path);
  if (!note.empty()) Say(absl::StrCat("--replay: ", note));
  const absl::StatusOr<ExploreCase> made = CaseOf(*saved, path);
  if (!made.ok()) return FlagError("--replay", std::string(made.status().message()));
  const ExploreCase& small = *made;
  Explorer explorer;
  const std::string wrong = explorer.Run(small);
  RETURN_IF_ERROR(explorer.host_error());
  return CaseReport{
      absl::StrCat(Describe(small), "\n  ", wrong.empty() ? "nothing is wrong" : wrong, "\n",
                   explorer.Trace(small, kTraceEvents)),
      !wrong.empty()};
}

int ReplayFile(const ExploreFlags& flags) {
  const absl::StatusOr<CaseReport> report =
      ReportOfFile(flags.replay_file, flags.plan.space.canary);
  if (report.ok()) return PrintReport(*report);
  return SayCannotBegin(report.status());
}

absl::StatusOr<CampaignState> ReadState(const std::string& flag, const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFlagsFile(flag, path));
  absl::StatusOr<CampaignState> state = ParseState(text, path);
  if (state.ok()) return state;
  return FlagError(flag, std::string(state.status().message()));
}

absl::StatusOr<Merged> MergeFiles(const std::string& list) {
  std::vector<StateFile> files;
  for (const std::string& path : SplitAt(list, ',')) {
    ASSIGN_OR_RETURN(CampaignState state, ReadState("--merge", path));
    files.push_back({path, std::move(state)});
  }
  absl::StatusOr<Merged> merged = MergeStates(files);
  if (merged.ok()) return merged;
  return FlagError("--merge", std::string(merged.status().message()));
}

int Merge(const std::string& list) {
  const absl::StatusOr<Merged> merged = MergeFiles(list);
  if (!merged.ok()) {
    Say(merged.status());
    return static_cast<int>(ExitCode::kUsage);
  }
  if (!Print(merged->text)) return static_cast<int>(ExitCode::kError);
  if (merged->failing) return static_cast<int>(ExitCode::kGuestFault);
  return static_cast<int>(merged->complete ? ExitCode::kOk : ExitCode::kPartial);
}

// The state to go on from: that of the file, if there is one and it is this campaign's.
absl::StatusOr<CampaignState> StateFor(const CampaignPlan& plan, const std::string& path) {
  CampaignState fresh = FreshState(plan);
  if (fresh.campaign.cases.empty()) {
    return absl::ResourceExhaustedError(
        "no room for a simulated machine; raise what limits memory here (ulimit -v)");
  }
  if (path.empty()) return fresh;
  absl::StatusOr<CampaignState> old = ReadState("--state", path);
  if (absl::IsNotFound(old.status())) return fresh;
  RETURN_IF_ERROR(old.status());
  const absl::Status same = CheckResumes(*old, path, plan);
  if (!same.ok()) return FlagError("--state", std::string(same.message()));
  return old;
}

// A search of hours should not end without a place for what it found.
absl::Status CheckOutputs(const ExploreFlags& flags) {
  if (!flags.state_file.empty()) {
    RETURN_IF_ERROR(CheckResultFile(flags.state_file, "--state", StandardOutput::kRefused));
  }
  if (!flags.save_file.empty()) RETURN_IF_ERROR(CheckResultFile(flags.save_file, "--save"));
  return absl::OkStatus();
}

// Writes a campaign's state now and then, so that what kills it costs seconds of it, not hours.
class StateKeeper {
 public:
  explicit StateKeeper(const std::string& path) : path_(path) {}

  // While the campaign goes on. A file that cannot be written is said once.
  void Keep(const CampaignState& now) {
    const auto time = std::chrono::steady_clock::now();
    if (path_.empty() || time < next_) return;
    next_ = time + kInterval;
    const absl::Status written = Write(now);
    if (!written.ok() && !said_) Say(written);
    said_ = said_ || !written.ok();
  }

  // At its end. False: it has been said.
  bool Finish(const CampaignState& state) const {
    if (path_.empty()) return true;
    const absl::Status written = Write(state);
    if (!written.ok()) Say(written);
    return written.ok();
  }

 private:
  absl::Status Write(const CampaignState& state) const {
    return WriteResultFile(path_, StateJson(state), "--state", StandardOutput::kRefused);
  }

  static constexpr std::chrono::seconds kInterval{5};
  const std::string path_;
  std::chrono::steady_clock::time_point next_;
  bool said_ = false;
};

int Campaign(const ExploreFlags& flags) {
  const CampaignPlan& plan = flags.plan;
  const absl::Status writable = CheckOutputs(flags);
  absl::StatusOr<CampaignState> state = writable.ok() ? StateFor(plan, flags.state_file) : writable;
  if (!state.ok()) {
    return SayCannotBegin(state.status());
  }
  StopRequest stop;
  const SignalsStop signals(stop);
  std::atomic<bool> stopped{false};
  ProgressLine progress(2, !flags.quiet);
  const uint64_t already = state->done;
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = [begin] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  const uint64_t total = SchedulesOfShard(plan.schedules, plan.shard, plan.shards);
  StateKeeper keeper(flags.state_file);
  const auto tick = [&](const CampaignState& now) {
    keeper.Keep(now);
    if (stop.signal() != 0) stopped.store(true, std::memory_order_relaxed);
    progress.Show(absl::StrFormat("%d of %d schedules%s, %d failures", now.done, total,
                                  PerSecond(now.done - already, seconds()), now.failures.size()));
  };
  const absl::Status ran = RunCampaign(plan, stopped, tick, *state);
  progress.Clear();
  const double took = seconds();
  std::string text = absl::StrFormat(
      "%d of %d schedules done in %.1f s%s on %d threads, %d failures\n", state->done, total, took,
      PerSecond(state->done - already, took), plan.jobs, state->failures.size());
  if (!ran.ok()) Say(ran);
  bool ok = ran.ok();
  for (const Failure& failure : state->failures) {
    const bool first = &failure == &state->failures.front();
    const absl::StatusOr<CaseReport> report =
        ReportAndSave(failure.seed, plan.space, first ? flags.save_file : "");
    if (!report.ok()) Say(report.status());
    ok = ok && report.ok();
    absl::StrAppend(&text, "\n",
                    report.ok() ? report->text : Report(failure.seed, plan.space).value_or(""));
  }
  if (state->failures.empty() && !flags.save_file.empty()) {
    absl::StrAppend(&text, NothingToSave(flags.save_file));
  }
  ok = Print(text) && ok;
  ok = keeper.Finish(*state) && ok;
  if (!state->failures.empty()) return static_cast<int>(ExitCode::kGuestFault);
  if (stop.signal() != 0) return static_cast<int>(ExitCode::kSignalBase) + stop.signal();
  return static_cast<int>(ok ? ExitCode::kOk : ExitCode::kError);
}

// No file is written over another one, and the case that is found after hours has a place.
absl::Status CheckFiles(const ExploreFlags& flags) {
  std::vector<NamedFile> inputs = {{"--replay", flags.replay_file}};
  if (!flags.merge.empty()) {
    for (const std::string& path : SplitAt(flags.merge, ',')) inputs.push_back({"--merge", path});
  }
  RETURN_IF_ERROR(
      CheckFilesApart({{"--state", flags.state_file}, {"--save", flags.save_file}}, inputs));
  if (flags.save_file.empty()) return absl::OkStatus();
  return CheckResultFile(flags.save_file, "--save");
}

}  // namespace

int ExploreCommand(const ExploreFlags& flags) {
  if (const absl::Status files = CheckFiles(flags); !files.ok()) {
    Say(files);
    return static_cast<int>(ExitCode::kUsage);
  }
  if (flags.exhaustive) return ExhaustiveCommand(*flags.exhaustive, flags.quiet);
  if (!flags.merge.empty()) return Merge(flags.merge);
  if (!flags.replay_file.empty()) return ReplayFile(flags);
  return flags.replay ? ReplaySeed(flags) : Campaign(flags);
}

}  // namespace sipi
