#include "vmm/explore/saved_case.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace sipi {
namespace {

constexpr char kSchema[] = "sipi.explore.case/1";

}  // namespace

std::string SavedCaseJson(const SavedCase& saved) {
  nlohmann::ordered_json tree = {
      {"schema", kSchema},
      {"seed", saved.seed},
      {"cpus", saved.space.cpus},
      {"scenario", saved.space.scenario == ExploreScenario::kRcu ? "rcu" : "smpboot"},
      {"strategy", nullptr},
      {"faults", saved.space.faults},
      {"retry", nullptr},
      {"left_out", saved.left_out}};
  if (saved.space.retry) tree["retry"] = *saved.space.retry;
  if (saved.space.strategy) tree["strategy"] = sequence::BaseName(*saved.space.strategy);
  return tree.dump(1) + "\n";
}

absl::StatusOr<SavedCase> ParseSavedCase(const std::string& text, const std::string& origin) {
  try {
    const auto tree = nlohmann::json::parse(text);
    SavedCase saved;
    bool known = tree.at("schema") == kSchema;
    tree.at("seed").get_to(saved.seed);
    tree.at("cpus").get_to(saved.space.cpus);
    tree.at("faults").get_to(saved.space.faults);
    if (!tree.at("retry").is_null()) saved.space.retry = tree.at("retry").get<bool>();
    tree.at("left_out").get_to(saved.left_out);
    const std::string scenario = tree.value("scenario", "smpboot");
    known = known && (scenario == "smpboot" || scenario == "rcu");
    if (scenario == "rcu") saved.space.scenario = ExploreScenario::kRcu;
    if (!tree.at("strategy").is_null()) {
      const auto name = tree.at("strategy").get<std::string>();
      for (uint32_t id = 0; id < sequence::kStrategyCount; ++id) {
        const auto strategy = static_cast<sequence::StrategyId>(id);
        if (name == sequence::BaseName(strategy)) saved.space.strategy = strategy;
      }
      known = known && saved.space.strategy.has_value();
    }
    constexpr uint32_t kMaxCpus = 64;
    if (known && saved.space.cpus != 1 && saved.space.cpus <= kMaxCpus) return saved;
    return absl::InvalidArgumentError(
        absl::StrCat(origin, ": schema, strategy or cpus are none that sipi explore --save wrote"));
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(origin, ": no file that sipi explore --save wrote (", error.what(), ")"));
  }
}

absl::StatusOr<ExploreCase> CaseOf(const SavedCase& saved) {
  ExploreCase small = CaseOf(saved.seed, saved.space);
  for (const std::string& name : saved.left_out) {
    if (LeaveOut(name, small)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the saved case leaves out \"", name,
                     "\", which its seed does not have; it is another version's"));
  }
  return small;
}

}  // namespace sipi
