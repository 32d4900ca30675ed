// A failing case made small, as a file: what it was drawn from, and what was left out of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "vmm/explore/explorer.h"

namespace sipi {

struct SavedCase {
  uint64_t seed = 0;
  ExploreSpace space;  // without its canary: files are for the command, which has none
  std::vector<std::string> left_out;
};

// "sipi.explore.case/1" as JSON, and back. Errors: InvalidArgument naming `origin`.
std::string SavedCaseJson(const SavedCase& saved);
absl::StatusOr<SavedCase> ParseSavedCase(const std::string& text, const std::string& origin);

// The small case. Errors: InvalidArgument naming what this build cannot leave out.
absl::StatusOr<ExploreCase> CaseOf(const SavedCase& saved);

}  // namespace sipi
