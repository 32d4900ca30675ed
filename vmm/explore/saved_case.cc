#include "vmm/explore/saved_case.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "vmm/base/json_reader.h"
#include "vmm/base/json_text.h"
#include "vmm/base/quoted.h"
#include "vmm/base/status_macros.h"
#include "vmm/base/version.h"
#include "vmm/explore/campaign_state.h"

namespace sipi {
namespace {

constexpr char kSchema[] = "sipi.explore.case/2";
constexpr char kSchemaWithoutBuild[] = "sipi.explore.case/1";
constexpr char kRemedy[] = "give a file that `sipi explore --save` wrote";

// Canaries are not saved: the fingerprint is that of the right kernel.
std::string FingerprintOf(ExploreSpace space) {
  space.canary = 0;
  return CasesFingerprint(space);
}

}  // namespace

SavedCase MakeSavedCase(uint64_t seed, const ExploreSpace& space,
                        std::vector<std::string> left_out) {
  return {seed, space, std::move(left_out), Version(), FingerprintOf(space)};
}

std::string OtherBuildsNote(const SavedCase& saved, const std::string& origin) {
  const std::string cases = FingerprintOf(saved.space);
  const bool known = !saved.cases.empty();
  if (saved.version == Version() && saved.cases == cases) return "";
  std::string text = absl::StrCat(origin, ": was saved by another build of sipi (");
  if (known) absl::StrAppend(&text, Printable(saved.version), ", ", Printable(saved.cases));
  if (!known) absl::StrAppend(&text, "it does not say which");
  absl::StrAppend(&text, "; this is ", Version(), ", ", cases,
                  "), whose cases or kernel differ: what failed there may not fail here. Replay it "
                  "with the build that saved it, or explore anew");
  return text;
}

std::string SavedCaseJson(const SavedCase& saved) {
  nlohmann::ordered_json tree = {
      {"schema", kSchema},        {"version", saved.version},
      {"cases", saved.cases},     {"seed", saved.seed},
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
  if (schema == kSchema) {
    reader.Read("version", saved.version);
    reader.Read("cases", saved.cases);
  } else if (schema != kSchemaWithoutBuild) {
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

absl::StatusOr<ExploreCase> CaseOf(const SavedCase& saved, const std::string& origin) {
  ExploreCase small = CaseOf(saved.seed, saved.space);
  for (const std::string& name : saved.left_out) {
    if (LeaveOut(name, small)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(origin, ": leaves out ", Quoted(name),
                     ", which its seed does not have here; it is another version's: replay it "
                     "with the sipi that saved it"));
  }
  return small;
}

}  // namespace sipi
