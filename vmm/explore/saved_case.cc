#include "vmm/explore/saved_case.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "vmm/base/json_reader.h"
#include "vmm/base/json_text.h"
#include "vmm/base/status_macros.h"
#include "vmm/explore/campaign_state.h"

namespace sipi {
namespace {

constexpr char kSchema[] = "sipi.explore.case/1";
constexpr char kRemedy[] = "give a file that `sipi explore --save` wrote";

}  // namespace

std::string SavedCaseJson(const SavedCase& saved) {
  nlohmann::ordered_json tree = {
      {"schema", kSchema},        {"seed", saved.seed},
      {"cpus", saved.space.cpus}, {"scenario", Name(saved.space.scenario)},
      {"strategy", nullptr},      {"faults", saved.space.faults},
      {"retry", nullptr},         {"left_out", saved.left_out}};
  if (saved.space.retry) tree["retry"] = *saved.space.retry;
  if (saved.space.strategy) tree["strategy"] = sequence::BaseName(*saved.space.strategy);
  return tree.dump(1) + "\n";
}

absl::StatusOr<SavedCase> ParseSavedCase(const std::string& text, const std::string& origin) {
  ASSIGN_OR_RETURN(const nlohmann::json tree, ParseJson(text, origin, kRemedy));
  ObjectReader reader(tree, absl::StrCat(origin, ": the file"));
  SavedCase saved;
  std::string schema;
  reader.Read("schema", schema);
  RETURN_IF_ERROR(reader.status());
  if (schema != kSchema) {
    return absl::InvalidArgumentError(
        absl::StrCat(origin, ": its schema is not \"", kSchema, "\"; ", kRemedy));
  }
  reader.Read("seed", saved.seed);
  if (const nlohmann::json* cpus = reader.Find("cpus"); cpus != nullptr && *cpus != 0) {
    reader.ReadWithin("cpus", saved.space.cpus, kMinExploreCpus, kMaxExploreCpus);
  }
  RETURN_IF_ERROR(ReadCaseSpace(reader, saved.space));
  const nlohmann::json* const left_out = reader.FindArray("left_out");
  RETURN_IF_ERROR(reader.status());
  for (const nlohmann::json& name : *left_out) {
    if (!name.is_string()) reader.FailAt("left_out", "must hold strings only");
    if (name.is_string()) saved.left_out.push_back(name.get<std::string>());
  }
  RETURN_IF_ERROR(reader.status());
  return saved;
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
