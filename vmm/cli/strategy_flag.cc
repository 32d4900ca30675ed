#include "vmm/cli/strategy_flag.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "vmm/base/status_macros.h"
#include "vmm/cli/flag_values.h"
#include "vmm/timeline/strategy_name.h"

namespace sipi {
namespace {

using sequence::Strategy;
using sequence::StrategyId;

StrategyId IdAt(uint32_t index) { return static_cast<StrategyId>(index); }

// The longest base name that `text` begins with, up to its end or a '+'.
bool MatchBase(const std::string& text, StrategyId* id, size_t* length) {
  *length = 0;
  for (uint32_t i = 0; i < sequence::kStrategyCount; ++i) {
    const std::string name = sequence::BaseName(IdAt(i));
    const bool ends = text.size() == name.size() || text[name.size()] == '+';
    if (text.compare(0, name.size(), name) != 0 || !ends || name.size() <= *length) continue;
    *id = IdAt(i);
    *length = name.size();
  }
  return *length > 0;
}

absl::Status TakeSuffix(const std::string& flag, const std::string& text, const std::string& suffix,
                        Strategy& strategy) {
  uint8_t* option = nullptr;
  if (suffix == "reuse") option = &strategy.reuse_calibration;
  if (suffix == "overlap") option = &strategy.overlap;
  if (option == nullptr) {
    return FlagError(flag, absl::StrCat("in ", Quoted(text), " there is no suffix ",
                                        Quoted("+" + suffix), "; give +reuse, +overlap or both"));
  }
  if (*option != 0) {
    return FlagError(flag, absl::StrCat(Quoted(text), " names +", suffix, " twice; name it once"));
  }
  *option = 1;
  return absl::OkStatus();
}

std::vector<Strategy> AllStrategies() {
  std::vector<Strategy> all;
  for (uint32_t i = 0; i < sequence::kStrategyCount; ++i) {
    for (uint8_t variant = 0; variant < 4; ++variant) {
      Strategy strategy = sequence::MakeStrategy(IdAt(i));
      strategy.reuse_calibration = variant & 1;
      strategy.overlap = static_cast<uint8_t>(variant >> 1);
      all.push_back(strategy);
    }
  }
  return all;
}

}  // namespace

std::vector<std::string> StrategyBaseNames() {
  std::vector<std::string> names;
  for (uint32_t i = 0; i < sequence::kStrategyCount; ++i) {
    names.emplace_back(sequence::BaseName(IdAt(i)));
  }
  return names;
}

absl::StatusOr<Strategy> ParseStrategy(const std::string& flag, const std::string& text) {
  StrategyId id{};
  size_t length = 0;
  if (!MatchBase(text, &id, &length)) {
    const std::string base = text.substr(0, text.find('+'));
    return UnknownName(flag, base, StrategyBaseNames());
  }
  Strategy strategy = sequence::MakeStrategy(id);
  if (length == text.size()) return strategy;
  for (const std::string& suffix : SplitAt(text.substr(length + 1), '+')) {
    RETURN_IF_ERROR(TakeSuffix(flag, text, suffix, strategy));
  }
  return strategy;
}

absl::StatusOr<std::vector<Strategy>> ParseStrategyList(const std::string& flag,
                                                        const std::string& text) {
  if (text == "all") return AllStrategies();
  std::vector<Strategy> list;
  std::vector<std::string> names;
  for (const std::string& part : SplitAt(text, ',')) {
    ASSIGN_OR_RETURN(const Strategy strategy, ParseStrategy(flag, part));
    const std::string name = StrategyName(strategy);
    for (const std::string& earlier : names) {
      if (earlier == name) {
        return FlagError(flag, absl::StrCat(name, " is given twice; name it once"));
      }
    }
    names.push_back(name);
    list.push_back(strategy);
  }
  return list;
}

}  // namespace sipi
