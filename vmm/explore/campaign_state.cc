#include "vmm/explore/campaign_state.h"

#include <cstddef>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "vmm/base/json_reader.h"
#include "vmm/base/json_text.h"
#include "vmm/base/quoted.h"
#include "vmm/base/status_macros.h"
#include "vmm/base/version.h"
#include "vmm/explore/explorer.h"

namespace sipi {
namespace {

constexpr char kSchema[] = "sipi.explore/2";
constexpr char kSchemaWithoutIdentity[] = "sipi.explore/1";
constexpr char kRemedy[] = "give a file that `sipi explore --state` wrote";
constexpr uint64_t kFingerprintSeeds = 64;  // milliseconds

std::optional<std::string> StrategyOf(const ExploreSpace& space) {
  if (!space.strategy) return std::nullopt;
  return sequence::BaseName(*space.strategy);
}

const char* OnOff(bool on) { return on ? "on" : "off"; }

// What makes a campaign, each under the name that a user gave it by.
using Options = std::vector<std::pair<const char*, std::string>>;
Options OptionsOf(const CampaignIdentity& campaign) {
  const ExploreSpace& space = campaign.space;
  return {{"the version of sipi", Printable(campaign.version)},
          {"the fingerprint of its kernel and cases", Printable(campaign.cases)},
          {"--scenario", Name(space.scenario)},
          {"--cpus", space.cpus == 0 ? "drawn" : absl::StrCat(space.cpus)},
          {"--strategy", StrategyOf(space).value_or("drawn")},
          {"--faults", OnOff(space.faults)},
          {"--retry", space.retry ? OnOff(*space.retry) : "drawn"},
          {"--seed", absl::StrCat(campaign.first_seed)},
          {"--schedules", absl::StrCat(campaign.schedules)},
          {"the number of shards", absl::StrCat(campaign.shards)}};
}

absl::Status ReadFailures(const nlohmann::json& array, const std::string& origin,
                          CampaignState& state) {
  const uint64_t first = state.campaign.first_seed;
  const uint64_t last = first + state.campaign.schedules - 1;
  std::set<uint64_t> seeds;
  for (size_t i = 0; i < array.size(); ++i) {
    ObjectReader reader(array[i], absl::StrCat(origin, ": failures[", i, "]"));
    Failure failure;
    reader.ReadWithin("seed", failure.seed, first, last);
    reader.Read("wrong", failure.wrong);
    RETURN_IF_ERROR(reader.status());
    const uint64_t shards = state.campaign.shards;
    const auto shard = static_cast<uint32_t>((failure.seed - first) % shards + 1);
    if (shard != state.shard) {
      reader.FailAt("seed", absl::StrCat("is shard ", shard, "/", shards, "'s: the file is shard ",
                                         state.shard, "/", shards, "'s; ", kRemedy));
    }
    if (!seeds.insert(failure.seed).second) {
      reader.FailAt("seed", absl::StrCat("stands there twice; ", kRemedy));
    }
    RETURN_IF_ERROR(reader.status());
    state.failures.push_back(std::move(failure));
  }
  return absl::OkStatus();
}

absl::Status CheckSchema(const nlohmann::json& tree, const std::string& origin) {
  ObjectReader reader(tree, absl::StrCat(origin, ": the file"));
  std::string schema;
  reader.Read("schema", schema);
  RETURN_IF_ERROR(reader.status());
  if (schema == kSchema) return absl::OkStatus();
  if (schema == kSchemaWithoutIdentity) {
    return absl::InvalidArgumentError(
        absl::StrCat(origin, ": is of an older sipi (", schema,
                     "), which did not write down whose campaign it is; begin anew with another "
                     "file"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(origin, ": its schema is not \"", kSchema, "\"; ", kRemedy));
}

}  // namespace

const char* Name(ExploreScenario scenario) {
  return scenario == ExploreScenario::kRcu ? "rcu" : "smpboot";
}

absl::Status ReadCaseSpace(ObjectReader& reader, ExploreSpace& space) {
  std::string scenario = Name(ExploreScenario::kSmpboot);
  std::optional<std::string> strategy;
  reader.ReadOptional("scenario", scenario);
  reader.ReadNullable("strategy", strategy);
  reader.Read("faults", space.faults);
  reader.ReadNullable("retry", space.retry);
  for (const auto each : {ExploreScenario::kSmpboot, ExploreScenario::kRcu}) {
    if (scenario == Name(each)) space.scenario = each;
  }
  if (scenario != Name(space.scenario)) reader.FailAt("scenario", "is unknown");
  for (uint32_t id = 0; strategy && id < sequence::kStrategyCount; ++id) {
    const auto each = static_cast<sequence::StrategyId>(id);
    if (*strategy == sequence::BaseName(each)) space.strategy = each;
  }
  if (strategy && !space.strategy) reader.FailAt("strategy", "is unknown");
  return reader.status();
}

std::string CasesFingerprint(const ExploreSpace& space) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a, 64 bits
  const auto add = [&hash](const std::string& text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  };
  Explorer explorer;
  for (uint64_t seed = 1; seed <= kFingerprintSeeds; ++seed) {
    const ExploreCase explored = CaseOf(seed, space);
    add(explorer.Run(explored));
    if (!explorer.host_error().ok()) return "";
    add(Describe(explored));
    add(explorer.Trace(explored, std::numeric_limits<size_t>::max()));
  }
  return absl::StrFormat("%016x", hash);
}

CampaignState FreshState(const CampaignPlan& plan) {
  CampaignState state;
  state.campaign = {.version = Version(),
                    .cases = CasesFingerprint(plan.space),
                    .space = plan.space,
                    .first_seed = plan.first_seed,
                    .schedules = plan.schedules,
                    .shards = plan.shards};
  state.shard = plan.shard;
  return state;
}

std::string Difference(const CampaignIdentity& first, const std::string& first_name,
                       const CampaignIdentity& second, const std::string& second_name) {
  const Options a = OptionsOf(first);
  const Options b = OptionsOf(second);
  std::string text;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].second == b[i].second) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ", a[i].first, " is ", a[i].second, " ",
                    first_name, " and ", b[i].second, " ", second_name);
  }
  return text;
}

std::string StateJson(const CampaignState& state) {
  const CampaignIdentity& campaign = state.campaign;
  const ExploreSpace& space = campaign.space;
  nlohmann::ordered_json tree = {{"schema", kSchema},
                                 {"version", campaign.version},
                                 {"cases", campaign.cases},
                                 {"scenario", Name(space.scenario)},
                                 {"cpus", nullptr},
                                 {"strategy", nullptr},
                                 {"faults", space.faults},
                                 {"retry", nullptr},
                                 {"first_seed", campaign.first_seed},
                                 {"schedules", campaign.schedules},
                                 {"shard", state.shard},
                                 {"shards", campaign.shards},
                                 {"done", state.done}};
  if (space.cpus != 0) tree["cpus"] = space.cpus;
  if (const auto strategy = StrategyOf(space)) tree["strategy"] = *strategy;
  if (space.retry) tree["retry"] = *space.retry;
  tree["failures"] = nlohmann::ordered_json::array();
  for (const Failure& failure : state.failures) {
    tree["failures"].push_back({{"seed", failure.seed}, {"wrong", failure.wrong}});
  }
  return tree.dump(1) + "\n";
}

absl::StatusOr<CampaignState> ParseState(const std::string& text, const std::string& origin) {
  ASSIGN_OR_RETURN(const nlohmann::json tree, ParseJson(text, origin, kRemedy));
  RETURN_IF_ERROR(CheckSchema(tree, origin));
  CampaignState state;
  CampaignIdentity& campaign = state.campaign;
  ObjectReader reader(tree, absl::StrCat(origin, ": the file"));
  reader.Read("version", campaign.version);
  reader.Read("cases", campaign.cases);
  if (const nlohmann::json* cpus = reader.Find("cpus"); cpus != nullptr && !cpus->is_null()) {
    reader.ReadWithin("cpus", campaign.space.cpus, kMinExploreCpus, kMaxExploreCpus);
  }
  RETURN_IF_ERROR(ReadCaseSpace(reader, campaign.space));
  reader.ReadWithin("first_seed", campaign.first_seed, uint64_t{0}, kMaxSeed);
  reader.ReadWithin("schedules", campaign.schedules, uint64_t{1}, kMaxSeed);
  reader.ReadWithin("shards", campaign.shards, 1u, kMaxShards);
  reader.ReadWithin("shard", state.shard, 1u, campaign.shards);
  RETURN_IF_ERROR(reader.status());
  const uint64_t wanted = SchedulesOfShard(campaign.schedules, state.shard, campaign.shards);
  reader.ReadWithin("done", state.done, uint64_t{0}, wanted);
  const nlohmann::json* const failures = reader.FindArray("failures");
  RETURN_IF_ERROR(reader.status());
  RETURN_IF_ERROR(ReadFailures(*failures, origin, state));
  return state;
}

absl::Status CheckResumes(const CampaignState& state, const std::string& origin,
                          const CampaignPlan& plan) {
  const CampaignState fresh = FreshState(plan);
  std::string difference = Difference(state.campaign, "there", fresh.campaign, "here");
  if (state.shard != fresh.shard) {
    absl::StrAppend(&difference, difference.empty() ? "" : ", ", "--shard is ", state.shard, "/",
                    state.campaign.shards, " there and ", fresh.shard, "/", fresh.campaign.shards,
                    " here");
  }
  if (difference.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(origin, " is another campaign's: ", difference,
                   "; name another file, or give the flags that it was begun with"));
}

}  // namespace sipi
