#include "vmm/cli/explore_flags.h"

#include <CLI/CLI.hpp>
#include <iterator>
#include <limits>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "vmm/base/status_macros.h"
#include "vmm/cli/fault_flag.h"
#include "vmm/cli/flag_values.h"
#include "vmm/cli/raw_flags.h"
#include "vmm/cli/strategy_flag.h"
#include "vmm/explore/rcu_case.h"

namespace sipi {
namespace {

absl::Status SetShard(const std::string& text, CampaignPlan& plan) {
  const std::vector<std::string> parts = SplitAt(text, '/');
  if (parts.size() != 2) {
    return FlagError("--shard", absl::StrCat(Quoted(text), " is no shard; write i/n, e.g. 2/8"));
  }
  ASSIGN_OR_RETURN(const uint64_t shards, ParseNumber("--shard", parts[1], 1, kMaxShards));
  ASSIGN_OR_RETURN(const uint64_t shard, ParseNumber("--shard", parts[0], 1, shards));
  plan.shard = static_cast<uint32_t>(shard);
  plan.shards = static_cast<uint32_t>(shards);
  return absl::OkStatus();
}

// Flags that only the other mode has.
absl::Status CheckMode(const RawExplore& raw, bool exhaustive) {
  const std::pair<const char*, const std::string*> random_only[] = {{"--state", &raw.state},
                                                                    {"--merge", &raw.merge}};
  const std::pair<const char*, const std::string*> exhaustive_only[] = {
      {"--preemptions", &raw.preemptions},
      {"--meet-at", &raw.meet_at},
      {"--store-buffer", &raw.store_buffer},
      {"--fault", &raw.fault}};
  for (const auto& [flag, value] : random_only) {
    if (!exhaustive || value->empty()) continue;
    return FlagError(flag, "an exhaustive walk starts over; leave it out");
  }
  for (const auto& [flag, value] : exhaustive_only) {
    if (exhaustive || value->empty()) continue;
    return FlagError(flag, "random schedules draw it; add --schedule=exhaustive");
  }
  if (!exhaustive) return absl::OkStatus();
  if (!raw.save.empty()) {
    return FlagError("--save", "--replay takes the list of choices that is printed; leave it out");
  }
  if (raw.shard != "1/1")
    return FlagError("--shard", "an exhaustive walk has no shards; use --jobs");
  return absl::OkStatus();
}

absl::Status CheckFileNames(const RawExplore& raw) {
  if (raw.state == "-" || raw.state == "/dev/stdout") {
    return FlagError("--state", "nobody can go on from standard output; name a file");
  }
  if (raw.merge.empty()) return absl::OkStatus();
  for (const std::string& path : SplitAt(raw.merge, ',')) {
    if (path.empty()) return FlagError("--merge", "a name is empty; write FILE,FILE");
  }
  return absl::OkStatus();
}

// Flags that name files or cases: what does not go together would be left undone without a word.
absl::Status CheckTogether(const RawExplore& raw) {
  const bool number = raw.replay.find_first_not_of("0123456789") == std::string::npos;
  if (!raw.merge.empty() && !raw.replay.empty()) {
    return FlagError("--replay", "--merge runs nothing; leave one of the two out");
  }
  if (!raw.state.empty() && !(raw.merge.empty() && raw.replay.empty())) {
    return FlagError("--state", raw.merge.empty() ? "--replay runs one case; leave it out"
                                                  : "--merge runs nothing; leave it out");
  }
  if (raw.save.empty()) return absl::OkStatus();
  if (!raw.merge.empty()) return FlagError("--save", "--merge runs nothing; leave it out");
  if (!number) return FlagError("--save", "that case is saved already; leave it out");
  return absl::OkStatus();
}

// Faults that concern one AP, and that bring-up must survive.
absl::Status CheckFault(const abi::FaultSpec& fault) {
  switch (fault.kind) {
    case abi::Fault::kNoStart:
    case abi::Fault::kLostInit:
    case abi::Fault::kLostSipi1:
    case abi::Fault::kLostSipi2:
    case abi::Fault::kLostSipis:
    case abi::Fault::kLate:
    case abi::Fault::kFailStep:
      return absl::OkStatus();
    default:
      return FlagError("--fault",
                       "exploring takes those that bring-up must survive: no-start, lost-init, "
                       "lost-sipi1, lost-sipi2, lost-sipis, late and fail-step");
  }
}

// Where grace period and hotplug meet: all places, or the one that is named.
absl::StatusOr<std::vector<uint64_t>> ParseMeetings(const RawExplore& raw, bool meets) {
  if (!meets && !raw.meet_at.empty()) {
    return FlagError("--meet-at", "is for --scenario=rcu without --seed; leave it out");
  }
  if (!meets) return std::vector<uint64_t>{0};
  if (raw.meet_at.empty()) {
    if (!raw.replay.empty()) {
      return FlagError("--replay", "add the --meet-at that was printed with the list");
    }
    return std::vector<uint64_t>(std::begin(kMeetings), std::end(kMeetings));
  }
  std::string known;
  for (const uint64_t met_at : kMeetings) {
    if (MeetingText(met_at) == raw.meet_at) return std::vector<uint64_t>{met_at};
    absl::StrAppend(&known, known.empty() ? "" : ", ", MeetingText(met_at));
  }
  return FlagError("--meet-at", absl::StrCat(Quoted(raw.meet_at), " is none of ", known));
}

absl::StatusOr<ExhaustiveFlags> CheckExhaustive(const RawExplore& raw, const CampaignPlan& random) {
  ExhaustiveFlags flags;
  ExhaustivePlan& plan = flags.plan;
  plan.space = random.space;
  const bool meets = plan.space.scenario == ExploreScenario::kRcu && raw.seed.empty();
  if (plan.space.cpus == 0) plan.space.cpus = meets ? 3 : 2;
  if (plan.space.cpus > kMaxExhaustiveCpus) {
    return FlagError("--cpus", absl::StrCat(plan.space.cpus,
                                            " CPUs have too many schedules to try all of them; "
                                            "give 2 or 3, or --schedule=random"));
  }
  if (meets && plan.space.cpus != 3) {
    return FlagError("--cpus",
                     "--scenario=rcu walks through three CPUs; leave it out, or add --seed");
  }
  ASSIGN_OR_RETURN(flags.meetings, ParseMeetings(raw, meets));
  constexpr uint64_t kMaxPreemptions = 16;
  plan.preemptions = meets ? 1 : 2;
  if (!raw.preemptions.empty()) {
    ASSIGN_OR_RETURN(const uint64_t preemptions,
                     ParseNumber("--preemptions", raw.preemptions, 0, kMaxPreemptions));
    plan.preemptions = static_cast<uint32_t>(preemptions);
  }
  if (!raw.schedules.empty()) plan.max_schedules = random.schedules;
  if (!raw.seed.empty()) plan.seed = random.first_seed;
  plan.jobs = random.jobs;
  flags.store_buffer = {false, true};
  if (!raw.store_buffer.empty()) {
    ASSIGN_OR_RETURN(const bool on, ParseChoice<bool>("--store-buffer", raw.store_buffer,
                                                      {{"on", true}, {"off", false}}));
    flags.store_buffer = {on};
  }
  if (!raw.fault.empty()) {
    ASSIGN_OR_RETURN(plan.fault, ParseFault(raw.fault, plan.space.cpus));
    RETURN_IF_ERROR(CheckFault(plan.fault));
  }
  if (!raw.replay.empty()) {
    ASSIGN_OR_RETURN(flags.replay, ParseChoices("--replay", raw.replay));
  }
  return flags;
}

}  // namespace

void AddExploreFlags(CLI::App& app, RawExplore& raw) {
  const auto add = [&app](auto&&... flag) { AddCommandFlag(app, flag...); };
  add("--schedule", raw.schedule, "random|exhaustive",
      "at random; or all there are with few preemptions, for 2 or 3 CPUs");
  add("--schedules", raw.schedules, "N",
      "how many, of all shards together (default 100000; exhaustive: all)");
  add("--seed", raw.seed, "N",
      "the first schedule's; the others count up from it (default 1); exhaustive: draw the knobs");
  add("--preemptions", raw.preemptions, "N",
      "exhaustive: how many a schedule may have (default 2)");
  add("--meet-at", raw.meet_at, "down:STATE|up:STATE",
      "exhaustive, rcu: where the CPU is when the grace period begins (default: everywhere)");
  add("--store-buffer", raw.store_buffer, "on|off", "exhaustive: one of the two (default both)");
  add("--fault", raw.fault, "KIND@CPU[:VALUE]", "exhaustive: this fault in every schedule");
  add("--scenario", raw.scenario, "smpboot|rcu",
      "what the guest does: bring CPUs up; or readers, updaters and hotplug (default smpboot)");
  add("--cpus", raw.cpus, "N", "CPUs of every schedule (default: drawn, 2 to 8)");
  add("--strategy", raw.strategy, "NAME", "of every schedule (default: drawn)");
  add("--faults", raw.faults, "on|off", "inject faults into half of them (default on)");
  add("--retry", raw.retry, "on|off",
      "bring CPUs that failed up once more (default: drawn; exhaustive: off)");
  add("--shard", raw.shard, "I/N", "do only the I-th of N parts (default 1/1)");
  add("--jobs", raw.jobs, "N", "threads (default: one per core)");
  add("--max-failures", raw.max_failures, "N", "end after so many new ones (default 1)");
  add("--state", raw.state, "FILE", "keep what has been done there, and go on from it");
  add("--replay", raw.replay, "SEED|FILE|CHOICES",
      "run this one alone, and show what is wrong with it");
  add("--save", raw.save, "FILE",
      "write the first failing case, made small, for --replay=FILE; without one no file is "
      "written");
  add("--merge", raw.merge, "FILE,FILE",
      "sum up the --state files of a campaign's shards; status 3 where some are missing or "
      "unfinished");
  app.add_flag("--quiet", raw.quiet, "show no progress")
      ->group("Switches")
      ->disable_flag_override();
}

absl::StatusOr<ExploreFlags> CheckExplore(const RawExplore& raw) {
  ExploreFlags flags;
  CampaignPlan& plan = flags.plan;
  ASSIGN_OR_RETURN(
      const bool exhaustive,
      ParseChoice<bool>("--schedule", raw.schedule, {{"random", false}, {"exhaustive", true}}));
  RETURN_IF_ERROR(CheckMode(raw, exhaustive));
  RETURN_IF_ERROR(CheckTogether(raw));
  RETURN_IF_ERROR(CheckFileNames(raw));
  if (!raw.schedules.empty()) {
    ASSIGN_OR_RETURN(plan.schedules, ParseNumber("--schedules", raw.schedules, 1, kMaxSeed));
  }
  if (!raw.seed.empty()) {
    ASSIGN_OR_RETURN(plan.first_seed, ParseNumber("--seed", raw.seed, 0, kMaxSeed));
  }
  ASSIGN_OR_RETURN(plan.space.scenario,
                   ParseChoice<ExploreScenario>(
                       "--scenario", raw.scenario,
                       {{"smpboot", ExploreScenario::kSmpboot}, {"rcu", ExploreScenario::kRcu}}));
  if (!raw.cpus.empty()) {
    ASSIGN_OR_RETURN(const uint64_t cpus,
                     ParseNumber("--cpus", raw.cpus, kMinExploreCpus, kMaxExploreCpus));
    plan.space.cpus = static_cast<uint32_t>(cpus);
  }
  if (!raw.strategy.empty()) {
    ASSIGN_OR_RETURN(const sequence::Strategy strategy, ParseStrategy("--strategy", raw.strategy));
    if (strategy.reuse_calibration != 0 || strategy.overlap != 0) {
      return FlagError("--strategy",
                       "takes no +reuse and +overlap here, which random schedules draw; leave them "
                       "out");
    }
    plan.space.strategy = strategy.id;
  }
  ASSIGN_OR_RETURN(plan.space.faults,
                   ParseChoice<bool>("--faults", raw.faults, {{"on", true}, {"off", false}}));
  if (!raw.retry.empty()) {
    ASSIGN_OR_RETURN(plan.space.retry,
                     ParseChoice<bool>("--retry", raw.retry, {{"on", true}, {"off", false}}));
  }
  RETURN_IF_ERROR(SetShard(raw.shard, plan));
  plan.jobs = std::max(std::thread::hardware_concurrency(), 1u);
  if (!raw.jobs.empty()) {
    ASSIGN_OR_RETURN(const uint64_t jobs, ParseNumber("--jobs", raw.jobs, 1, 1024));
    plan.jobs = static_cast<uint32_t>(jobs);
  }
  ASSIGN_OR_RETURN(const uint64_t failures,
                   ParseNumber("--max-failures", raw.max_failures, 1, 1'000'000));
  plan.max_failures = static_cast<uint32_t>(failures);
  if (exhaustive) {
    ASSIGN_OR_RETURN(flags.exhaustive, CheckExhaustive(raw, plan));
  } else if (!raw.replay.empty()) {
    const bool number = raw.replay.find_first_not_of("0123456789") == std::string::npos;
    if (number) {
      ASSIGN_OR_RETURN(flags.replay, ParseNumber("--replay", raw.replay, 0,
                                                 std::numeric_limits<uint64_t>::max()));
    } else {
      flags.replay_file = raw.replay;
    }
  }
  flags.save_file = raw.save;
  flags.state_file = raw.state;
  flags.merge = raw.merge;
  flags.quiet = raw.quiet;
  return flags;
}

}  // namespace sipi
