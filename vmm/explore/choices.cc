// Lists of choices: the walk through their tree, and their text.
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "vmm/explore/exhaustive.h"

namespace sipi {

std::optional<ChoiceList> NextChoices(std::span<const sim::ChoicePoint> points, size_t fixed) {
  size_t length = points.size();
  while (length > fixed && points[length - 1].taken + 1 >= points[length - 1].alternatives) {
    --length;
  }
  if (length <= fixed) return std::nullopt;
  ChoiceList next;
  next.reserve(length);
  for (size_t i = 0; i < length; ++i) next.push_back(points[i].taken);
  ++next.back();
  return next;
}

std::vector<ChoiceList> Subtrees(std::span<const sim::ChoicePoint> points) {
  std::vector<ChoiceList> subtrees;
  for (size_t i = 0; i < points.size(); ++i) {
    for (uint16_t other = 1; other < points[i].alternatives; ++other) {
      subtrees.emplace_back(i + 1, uint16_t{0});
      subtrees.back().back() = other;
    }
  }
  return subtrees;
}

std::string ChoicesText(const ChoiceList& choices) {
  std::string text;
  for (size_t i = 0; i < choices.size(); ++i) {
    if (choices[i] == 0) continue;
    absl::StrAppend(&text, text.empty() ? "" : ",", i, ":", choices[i]);
  }
  return text.empty() ? "0:0" : text;
}

absl::StatusOr<ChoiceList> ParseChoices(const std::string& flag, const std::string& text) {
  constexpr uint32_t kMaxIndex = 1'000'000;
  ChoiceList choices;
  for (const auto& part : absl::StrSplit(text, ',')) {
    const std::vector<std::string> pair = absl::StrSplit(part, ':');
    uint32_t index = 0;
    uint32_t taken = 0;
    if (pair.size() != 2 || !absl::SimpleAtoi(pair[0], &index) ||
        !absl::SimpleAtoi(pair[1], &taken) || index > kMaxIndex || taken > 0xffff) {
      return absl::InvalidArgumentError(
          absl::StrCat(flag, ": \"", part,
                       "\" is no choice; write INDEX:ALTERNATIVE, several by commas, as "
                       "--schedule=exhaustive printed them, e.g. 12:1,40:2"));
    }
    if (choices.size() <= index) choices.resize(index + 1, 0);
    choices[index] = static_cast<uint16_t>(taken);
  }
  return choices;
}

std::string DescribeChoices(std::span<const sim::ChoicePoint> points) {
  using Kind = sim::ChoicePoint::Kind;
  std::string text;
  for (size_t i = 0; i < points.size(); ++i) {
    const sim::ChoicePoint& point = points[i];
    if (point.taken == 0) continue;
    absl::StrAppendFormat(&text, "  choice %d, at %.3f us: ", i,
                          static_cast<double>(point.time_ns) / 1e3);
    if (point.kind == Kind::kNext) {
      absl::StrAppend(&text, "CPU ", point.from, " blocks, CPU ", point.to, " runs next\n");
    } else if (point.waits) {
      absl::StrAppend(&text, "CPU ", point.from, " stands back until another one has run\n");
    } else {
      absl::StrAppend(&text, "CPU ", point.from, " stands back, CPU ", point.to, " runs\n");
    }
  }
  return text.empty() ? "  no CPU stands back\n" : text;
}

}  // namespace sipi
