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
  std::string version;  // of the sipi that saved it; empty: a file that does not say
  std::string cases;    // what its kernel made of a few of the cases (CasesFingerprint)
};

// As this build saves it.
SavedCase MakeSavedCase(uint64_t seed, const ExploreSpace& space,
                        std::vector<std::string> left_out);

// Empty if this build saved it, or one that draws the same cases and has the same kernel. Else a
// note for people that names `origin`, what differs and the remedy: the case may be another one
// here.
std::string OtherBuildsNote(const SavedCase& saved, const std::string& origin);

// "sipi.explore.case/2" as JSON, and back; reads /1, too, which does not say what build it is from.
// Errors: InvalidArgument naming `origin`.
std::string SavedCaseJson(const SavedCase& saved);
absl::StatusOr<SavedCase> ParseSavedCase(const std::string& text, const std::string& origin);

// The small case. Errors: InvalidArgument naming `origin` and what this build cannot leave out.
absl::StatusOr<ExploreCase> CaseOf(const SavedCase& saved, const std::string& origin);

}  // namespace sipi
