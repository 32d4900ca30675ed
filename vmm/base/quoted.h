// The user's text in our messages.
#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace sipi {

// The longest piece of the user's text that an error repeats.
inline constexpr size_t kQuotedChars = 60;

// With '?' for every control character, which a terminal would obey.
inline std::string Printable(absl::string_view text) {
  std::string out(text);
  for (char& c : out) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < ' ' || byte == 0x7f) c = '?';
  }
  return out;
}

// In quotes, printable, and cut where it is long.
inline std::string Quoted(absl::string_view text) {
  std::string out = "'" + Printable(text.substr(0, kQuotedChars));
  if (text.size() > kQuotedChars) out += "...";
  return out + "'";
}

}  // namespace sipi
