#include "vmm/base/json_text.h"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace sipi {
namespace {

// "line 3, column 7 (byte 41)" for a byte that counts from 1.
std::string Place(std::string_view text, size_t byte) {
  const std::string_view before = text.substr(0, std::min(text.size(), byte > 0 ? byte - 1 : 0));
  const auto newlines = std::count(before.begin(), before.end(), '\n');
  const size_t newline = before.rfind('\n');
  const size_t line_start = newline == std::string_view::npos ? 0 : newline + 1;
  return absl::StrCat("line ", newlines + 1, ", column ", before.size() - line_start + 1, " (byte ",
                      byte, ")");
}

}  // namespace

absl::StatusOr<nlohmann::json> ParseJson(std::string_view text, const std::string& origin,
                                         const char* remedy,
                                         const nlohmann::json::parser_callback_t& watch) {
  const auto error_of = [&](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat(origin, ": ", what, "; ", remedy));
  };
  try {
    return nlohmann::json::parse(text.begin(), text.end(), watch);
  } catch (const nlohmann::json::parse_error& error) {
    return error_of(absl::StrCat("malformed JSON at ", Place(text, error.byte)));
  } catch (const nlohmann::json::out_of_range&) {  // 1e999
    return error_of("holds a number that is too large");
  } catch (const std::exception&) {  // memory
    return error_of("is too much to be read");
  }
}

}  // namespace sipi
