#include "vmm/profile/profile.h"

#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "vmm/base/json_text.h"
#include "vmm/base/status_macros.h"
#include "vmm/base/text_file.h"
#include "vmm/profile/builtin_profiles.h"
#include "vmm/profile/profile_reader.h"

namespace sipi {
namespace {

constexpr uint64_t kMaxFileBytes = uint64_t{1} << 20;

// Whether an object has a key twice, which the parser would take without a word. Fed by the
// parser's callback.
class DuplicateKeys {
 public:
  bool operator()(int depth, nlohmann::json::parse_event_t event, const nlohmann::json& value) {
    using Event = nlohmann::json::parse_event_t;
    const auto level = static_cast<size_t>(depth);
    if (keys_.size() <= level + 1) keys_.resize(level + 2);
    if (event == Event::object_start) keys_[level + 1].clear();
    if (event == Event::key && !keys_[level].insert(value.get<std::string>()).second) {
      if (first_.empty()) first_ = value.get<std::string>();
    }
    return true;
  }
  const std::string& first() const { return first_; }

 private:
  std::vector<std::set<std::string>> keys_;  // by depth, of the object that is open there
  std::string first_;
};

bool IsFileName(absl::string_view name) {
  return absl::StrContains(name, "/") || absl::EndsWith(name, ".json");
}

}  // namespace

std::vector<std::string> BuiltinProfileNames() {
  std::vector<std::string> names;
  for (const BuiltinProfile& profile : BuiltinProfiles()) names.emplace_back(profile.name);
  return names;
}

absl::StatusOr<Profile> ParseProfile(absl::string_view json, absl::string_view name) {
  const std::string origin(name);
  DuplicateKeys duplicates;
  const auto watch = [&duplicates](int depth, nlohmann::json::parse_event_t event,
                                   const nlohmann::json& value) {
    return duplicates(depth, event, value);
  };
  ASSIGN_OR_RETURN(const nlohmann::json tree, ParseJson({json.data(), json.size()}, origin,
                                                        "docs/profiles.md shows the form", watch));
  if (!duplicates.first().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(origin, ": key \"", duplicates.first(), "\" stands twice; keep one"));
  }
  return ReadProfile(tree, origin);
}

absl::StatusOr<Profile> LoadProfile(absl::string_view name) {
  if (IsFileName(name)) {
    const std::string path(name);
    ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path, kMaxFileBytes));
    return ParseProfile(text, path);
  }
  for (const BuiltinProfile& profile : BuiltinProfiles()) {
    if (name == profile.name) return ParseProfile(profile.json, absl::StrCat("profile ", name));
  }
  return absl::NotFoundError(absl::StrCat("there is no profile \"", name, "\"; choose one of ",
                                          absl::StrJoin(BuiltinProfileNames(), ", "),
                                          ", or name a file that ends in .json"));
}

}  // namespace sipi
