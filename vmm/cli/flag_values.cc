#include "vmm/cli/flag_values.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "vmm/base/status_macros.h"

namespace sipi {
namespace {

enum class NumberShape { kOk, kMalformed, kTooLarge };

NumberShape ReadDigits(const std::string& text, uint64_t* value) {
  const bool hex = text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
  const char* begin = text.data() + (hex ? 2 : 0);
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(begin, end, *value, hex ? 16 : 10);
  if (error == std::errc::result_out_of_range && stop == end) return NumberShape::kTooLarge;
  if (error != std::errc() || stop != end) return NumberShape::kMalformed;
  return NumberShape::kOk;
}

// Binary exponent of a size's suffix.
std::optional<int> SizeShift(char suffix) {
  switch (suffix) {
    case 'K':
    case 'k':
      return 10;
    case 'M':
    case 'm':
      return 20;
    case 'G':
    case 'g':
      return 30;
    default:
      return std::nullopt;
  }
}

}  // namespace

absl::Status FlagError(const std::string& flag, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(flag, ": ", what));
}

absl::Status WithFlag(const std::string& flag, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(flag, ": ", status.message()));
}

absl::StatusOr<uint64_t> ParseNumber(const std::string& flag, const std::string& text, uint64_t min,
                                     uint64_t max) {
  uint64_t value = 0;
  switch (ReadDigits(text, &value)) {
    case NumberShape::kMalformed:
      return FlagError(
          flag, absl::StrCat(Quoted(text), " is not a number; give one from ", min, " to ", max));
    case NumberShape::kTooLarge:
      return FlagError(flag, absl::StrCat(Quoted(text), " is too large; the limit is ", max));
    case NumberShape::kOk:
      break;
  }
  if (value < min) {
    return FlagError(flag, absl::StrCat(Quoted(text), " is too small; the least is ", min));
  }
  if (value > max) {
    return FlagError(flag, absl::StrCat(Quoted(text), " is too large; the limit is ", max));
  }
  return value;
}

absl::StatusOr<uint64_t> ParseBytes(const std::string& flag, const std::string& text) {
  const std::optional<int> shift = text.empty() ? std::nullopt : SizeShift(text.back());
  const std::string digits = shift ? text.substr(0, text.size() - 1) : text;
  uint64_t value = 0;
  if (ReadDigits(digits, &value) == NumberShape::kMalformed) {
    return FlagError(flag, absl::StrCat(Quoted(text), " is not a size; give e.g. 512M or 2G"));
  }
  ASSIGN_OR_RETURN(value, ParseNumber(flag, digits, 0,
                                      std::numeric_limits<uint64_t>::max() >> shift.value_or(0)));
  return value << shift.value_or(0);
}

std::vector<std::string> SplitAt(const std::string& text, char separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  while (true) {
    const size_t end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end == std::string::npos ? end : end - begin));
    if (end == std::string::npos) return parts;
    begin = end + 1;
  }
}

absl::StatusOr<std::vector<uint32_t>> ParseNumberList(const std::string& flag,
                                                      const std::string& text, uint32_t min,
                                                      uint32_t max) {
  std::vector<uint32_t> numbers;
  std::vector<bool> seen(size_t{max} + 1, false);
  for (const std::string& part : SplitAt(text, ',')) {
    ASSIGN_OR_RETURN(const uint64_t number, ParseNumber(flag, part, min, max));
    if (seen[number]) return FlagError(flag, absl::StrCat(number, " is given twice; name it once"));
    seen[number] = true;
    numbers.push_back(static_cast<uint32_t>(number));
  }
  return numbers;
}

std::string JoinNames(const std::vector<std::string>& names) {
  std::string out;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) out += i + 1 == names.size() ? " or " : ", ";
    out += names[i];
  }
  return out;
}

absl::Status UnknownName(const std::string& flag, const std::string& text,
                         const std::vector<std::string>& names) {
  const std::string hint = DidYouMean(text, names);
  return FlagError(flag,
                   absl::StrCat("there is no ", Quoted(text), hint,
                                hint.empty() ? "; it takes " : " It takes ", JoinNames(names)));
}

}  // namespace sipi
