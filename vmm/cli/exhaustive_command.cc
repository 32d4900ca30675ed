// `sipi explore --schedule=exhaustive`: all schedules of one case within a bound of preemptions,
// and the replay of one of them.
#include <atomic>
#include <chrono>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "vmm/base/exit_codes.h"
#include "vmm/base/status_macros.h"
#include "vmm/cli/commands.h"
#include "vmm/cli/kvm_access.h"
#include "vmm/cli/messages.h"
#include "vmm/cli/process_setup.h"
#include "vmm/cli/progress.h"
#include "vmm/explore/exhaustive.h"
#include "vmm/explore/rcu_case.h"

namespace sipi {
namespace {

constexpr size_t kTraceEvents = 60;

bool ExploresRcu(const ExhaustivePlan& plan) {
  return plan.space.scenario == ExploreScenario::kRcu && !plan.seed;
}

std::string NameOf(const ExhaustivePlan& plan) {
  return absl::StrCat(plan.preemptions, plan.preemptions == 1 ? " preemption" : " preemptions",
                      plan.store_buffer ? ", with a store buffer" : "",
                      ExploresRcu(plan) ? absl::StrCat(", met at ", MetAt(plan.met_at)) : "");
}

// The run met a point for each choice of the list, with that alternative. One that it did not meet
// would have been taken for none.
absl::Status CheckMet(const ChoiceList& choices, std::span<const sim::ChoicePoint> points) {
  for (size_t i = 0; i < choices.size(); ++i) {
    const bool met = i < points.size() && points[i].taken == choices[i];
    if (choices[i] == 0 || met) continue;
    const std::string there =
        i < points.size()
            ? absl::StrCat("choice ", i, " has the alternatives 0 to ", points[i].alternatives - 1)
            : absl::StrCat("this schedule has ", points.size(), " choices");
    return absl::InvalidArgumentError(
        absl::StrCat("--replay: there is no choice ", i, ":", choices[i], ": ", there,
                     "; give the list with the flags that it was printed for"));
  }
  return absl::OkStatus();
}

struct ScheduleReport {
  std::string text;
  bool failed = false;
};

// One schedule: what is wrong with it, made small, with its last events. Errors: the host has no
// room for it, or the list is none of this plan's.
absl::StatusOr<ScheduleReport> Report(const ExhaustivePlan& plan, const ChoiceList& choices) {
  Explorer explorer;
  ExploreCase found = ExhaustiveCase(plan);
  found.choices = choices;
  std::string wrong = explorer.Run(found);
  RETURN_IF_ERROR(explorer.host_error());
  RETURN_IF_ERROR(CheckMet(choices, explorer.ChoicePoints()));
  std::string text = Describe(found);
  if (wrong.empty()) {
    absl::StrAppend(&text, "\n", DescribeChoices(explorer.ChoicePoints()), "  nothing is wrong\n");
    return ScheduleReport{std::move(text), false};
  }
  found.choices = ShrinkChoices(explorer, found, &wrong);
  absl::StrAppend(
      &text, "\n", DescribeChoices(explorer.ChoicePoints()), "  ", wrong,
      "\n  again, with the same flags: --store-buffer=", plan.store_buffer ? "on" : "off",
      ExploresRcu(plan) ? absl::StrCat(" --meet-at=", MeetingText(plan.met_at)) : "",
      " --replay=", ChoicesText(found.choices), "\n", explorer.Trace(found, kTraceEvents));
  return ScheduleReport{std::move(text), true};
}

int SayError(const absl::Status& status) {
  Say(status);
  return static_cast<int>(ExitCodeOf(status));
}

int Replay(const ExhaustiveFlags& flags) {
  ExhaustivePlan plan = flags.plan;
  plan.store_buffer = flags.store_buffer.size() == 1 && flags.store_buffer[0];
  plan.met_at = flags.meetings.front();
  const absl::StatusOr<ScheduleReport> report = Report(plan, *flags.replay);
  if (!report.ok()) return SayError(report.status());
  if (!Print(report->text)) return static_cast<int>(ExitCode::kError);
  return static_cast<int>(report->failed ? ExitCode::kGuestFault : ExitCode::kOk);
}

std::string Sum(const ExhaustivePlan& plan, const ExhaustiveResult& result, double seconds) {
  const std::string took = absl::StrFormat(" in %.1f s%s on %d threads", seconds,
                                           PerSecond(result.schedules, seconds), plan.jobs);
  if (result.failing) {
    return absl::StrCat("schedule ", result.schedules, " within ", NameOf(plan),
                        " fails: ", result.wrong, took, "\n");
  }
  if (!result.complete) {
    return absl::StrCat(result.schedules, " schedules within ", NameOf(plan),
                        ", not all that there are: nothing is wrong", took, "\n");
  }
  return absl::StrCat("all ", result.schedules, " schedules within ", NameOf(plan),
                      ": nothing is wrong", took, "\n");
}

// The walks to do: for RCU one for each place where grace period and hotplug can meet.
std::vector<ExhaustivePlan> Walks(const ExhaustiveFlags& flags) {
  std::vector<ExhaustivePlan> walks;
  for (const bool buffered : flags.store_buffer) {
    for (const uint64_t met_at : flags.meetings) {
      walks.push_back(flags.plan);
      walks.back().store_buffer = buffered;
      walks.back().met_at = met_at;
    }
  }
  return walks;
}

}  // namespace

int ExhaustiveCommand(const ExhaustiveFlags& flags, bool quiet) {
  if (flags.replay) return Replay(flags);
  StopRequest stop;
  const SignalsStop signals(stop);
  std::atomic<bool> stopped{false};
  for (const ExhaustivePlan& plan : Walks(flags)) {
    ProgressLine progress(2, !quiet);
    const auto begin = std::chrono::steady_clock::now();
    const auto seconds = [begin] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    const auto tick = [&](uint64_t schedules) {
      if (stop.signal() != 0) stopped.store(true, std::memory_order_relaxed);
      progress.Show(absl::StrFormat("%d schedules%s", schedules, PerSecond(schedules, seconds())));
    };
    const ExhaustiveResult result = RunExhaustive(plan, stopped, tick);
    progress.Clear();
    std::string text = Sum(plan, result, seconds());
    if (result.failing) {
      const absl::StatusOr<ScheduleReport> report = Report(plan, *result.failing);
      if (!report.ok()) Say(report.status());
      if (report.ok()) absl::StrAppend(&text, "\n", report->text);
    }
    if (!Print(text)) return static_cast<int>(ExitCode::kError);
    if (result.failing) return static_cast<int>(ExitCode::kGuestFault);
    if (!result.error.ok()) return SayError(result.error);
    if (stop.signal() != 0) return static_cast<int>(ExitCode::kSignalBase) + stop.signal();
  }
  return static_cast<int>(ExitCode::kOk);
}

}  // namespace sipi
