// From a text to a JSON tree, with errors in words of our own.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace sipi {

// The tree of `text`. Errors: InvalidArgument, "ORIGIN: malformed JSON at line 3, column 7 (byte
// 41); REMEDY" or what else is wrong with it; `remedy` says what to give instead. `watch`, if any,
// is the parser's callback. Throws nothing. Any thread.
absl::StatusOr<nlohmann::json> ParseJson(std::string_view text, const std::string& origin,
                                         const char* remedy,
                                         const nlohmann::json::parser_callback_t& watch = nullptr);

}  // namespace sipi
