// `sipi explore`: a campaign over schedules and faults, the replay of one seed, the merging of
// shards.
#include <atomic>
#include <chrono>
#include <string>
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
#include "vmm/cli/process_setup.h"
#include "vmm/cli/progress.h"
#include "vmm/explore/explorer.h"
#include "vmm/report/file_writer.h"

namespace sipi {
namespace {

constexpr uint64_t kMaxStateBytes = 16 << 20;
constexpr size_t kTraceEvents = 60;

// What a person needs: the case, made small, and its end.
std::string Report(uint64_t seed, const ExploreSpace& space) {
  Explorer explorer;
  const ExploreCase found = CaseOf(seed, space);
  std::string wrong = explorer.Run(found);
  if (wrong.empty()) return absl::StrCat(Describe(found), "\n  nothing is wrong\n");
  std::string text = absl::StrCat(Describe(found), "\n  ", wrong, "\n");
  const ExploreCase small = explorer.Shrink(found, &wrong);
  absl::StrAppend(&text, "made small: ", Describe(small), "\n  ", wrong, "\n",
                  explorer.Trace(small, kTraceEvents));
  return text;
}

absl::StatusOr<CampaignState> ReadState(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path, kMaxStateBytes));
  return ParseState(text, path);
}

int Merge(const std::string& list) {
  std::vector<CampaignState> states;
  bool failed = false;
  for (const std::string& path : SplitAt(list, ',')) {
    absl::StatusOr<CampaignState> state = ReadState(path);
    if (!state.ok()) {
      Say(state.status());
      return static_cast<int>(ExitCode::kUsage);
    }
    failed = failed || !state->failures.empty();
    states.push_back(*std::move(state));
  }
  if (!Print(MergeTable(states))) return static_cast<int>(ExitCode::kError);
  return static_cast<int>(failed ? ExitCode::kGuestFault : ExitCode::kOk);
}

// The state to go on from: that of the file, if there is one and it is this campaign's.
absl::StatusOr<CampaignState> StateFor(const CampaignPlan& plan, const std::string& path) {
  CampaignState fresh;
  fresh.first_seed = plan.first_seed;
  fresh.schedules = plan.schedules;
  fresh.shard = plan.shard;
  fresh.shards = plan.shards;
  if (path.empty()) return fresh;
  const absl::StatusOr<CampaignState> old = ReadState(path);
  if (absl::IsNotFound(old.status())) return fresh;
  RETURN_IF_ERROR(old.status());
  if (old->first_seed == plan.first_seed && old->schedules == plan.schedules &&
      old->shard == plan.shard && old->shards == plan.shards) {
    return old;
  }
  return FlagError("--state", absl::StrCat(path, " is another campaign's; name another file"));
}

int Campaign(const ExploreFlags& flags) {
  const CampaignPlan& plan = flags.plan;
  absl::StatusOr<CampaignState> state = StateFor(plan, flags.state_file);
  if (!state.ok()) {
    Say(state.status());
    return static_cast<int>(ExitCode::kUsage);
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
  const auto tick = [&](const CampaignState& now) {
    if (stop.signal() != 0) stopped.store(true, std::memory_order_relaxed);
    progress.Show(absl::StrFormat("%d of %d schedules, %.0f per second, %d failures", now.done,
                                  total, static_cast<double>(now.done - already) / seconds(),
                                  now.failures.size()));
  };
  RunCampaign(plan, stopped, tick, *state);
  progress.Clear();
  const double took = seconds();
  std::string text = absl::StrFormat(
      "%d of %d schedules done in %.1f s, %.0f per second on %d threads, %d failures\n",
      state->done, total, took, static_cast<double>(state->done - already) / took, plan.jobs,
      state->failures.size());
  for (const Failure& failure : state->failures) {
    absl::StrAppend(&text, "\n", Report(failure.seed, plan.space));
  }
  bool ok = Print(text);
  if (!flags.state_file.empty()) {
    const absl::Status written = WriteResultFile(flags.state_file, StateJson(*state), "--state");
    if (!written.ok()) Say(written);
    ok = ok && written.ok();
  }
  if (!state->failures.empty()) return static_cast<int>(ExitCode::kGuestFault);
  if (stop.signal() != 0) return static_cast<int>(ExitCode::kSignalBase) + stop.signal();
  return static_cast<int>(ok ? ExitCode::kOk : ExitCode::kError);
}

}  // namespace

int ExploreCommand(const ExploreFlags& flags) {
  if (flags.exhaustive) return ExhaustiveCommand(*flags.exhaustive, flags.quiet);
  if (!flags.merge.empty()) return Merge(flags.merge);
  if (!flags.replay) return Campaign(flags);
  return static_cast<int>(Print(Report(*flags.replay, flags.plan.space)) ? ExitCode::kOk
                                                                         : ExitCode::kError);
}

}  // namespace sipi
