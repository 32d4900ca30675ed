// Reads the values of flags: numbers, sizes, names out of a list. Every error names the flag, what
// it got, and what it takes; all are InvalidArgument (exit status 2). No state; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "vmm/base/quoted.h"
#include "vmm/base/status_macros.h"
#include "vmm/cli/suggest.h"

namespace sipi {

// "--flag: 'text' is not ...; remedy" as InvalidArgument.
absl::Status FlagError(const std::string& flag, const std::string& what);

// An error of a part that does not know which flag it concerns, with the flag in front.
absl::Status WithFlag(const std::string& flag, const absl::Status& status);
template <class T>
absl::StatusOr<T> WithFlag(const std::string& flag, absl::StatusOr<T> result) {
  if (result.ok()) return result;
  return WithFlag(flag, result.status());
}

// A decimal (or 0x hexadecimal) number in [min, max].
absl::StatusOr<uint64_t> ParseNumber(const std::string& flag, const std::string& text, uint64_t min,
                                     uint64_t max);

// "123", "64K", "512M", "2G": bytes, powers of 1,024.
absl::StatusOr<uint64_t> ParseBytes(const std::string& flag, const std::string& text);

// "1,5,9": numbers in [min, max], no repeats.
absl::StatusOr<std::vector<uint32_t>> ParseNumberList(const std::string& flag,
                                                      const std::string& text, uint32_t min,
                                                      uint32_t max);

std::vector<std::string> SplitAt(const std::string& text, char separator);

template <class T>
using Choices = std::vector<std::pair<std::string, T>>;

template <class T>
std::vector<std::string> NamesOf(const Choices<T>& choices) {
  std::vector<std::string> names;
  names.reserve(choices.size());
  for (const auto& [name, value] : choices) names.push_back(name);
  return names;
}

// "a, b or c".
std::string JoinNames(const std::vector<std::string>& names);

// The error for a name that is none of `names`.
absl::Status UnknownName(const std::string& flag, const std::string& text,
                         const std::vector<std::string>& names);

template <class T>
absl::StatusOr<T> ParseChoice(const std::string& flag, const std::string& text,
                              const Choices<T>& choices) {
  for (const auto& [name, value] : choices) {
    if (name == text) return value;
  }
  return UnknownName(flag, text, NamesOf(choices));
}

// --- Those below leave `value` alone where the flag was not given (`text` is empty).
template <class T>
absl::Status SetNumber(const char* flag, const std::string& text, uint64_t min, uint64_t max,
                       T& value) {
  if (text.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const uint64_t number, ParseNumber(flag, text, min, max));
  value = static_cast<T>(number);
  return absl::OkStatus();
}

template <class T>
absl::Status SetChoice(const char* flag, const std::string& text, const Choices<T>& choices,
                       T& value) {
  if (text.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(value, ParseChoice<T>(flag, text, choices));
  return absl::OkStatus();
}

inline absl::Status SetSwitch(const char* flag, const std::string& text, uint8_t& value) {
  return SetChoice<uint8_t>(flag, text, {{"on", 1}, {"off", 0}}, value);
}

}  // namespace sipi
