// A campaign's state as a file, and whose it is.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "vmm/base/json_reader.h"
#include "vmm/explore/campaign.h"

namespace sipi {

// Names in flags and files: "smpboot", "rcu".
const char* Name(ExploreScenario scenario);

// What campaigns and saved cases have in common of their space: scenario, strategy, faults, retry.
// Errors: those of `reader`, which are its status afterwards.
absl::Status ReadCaseSpace(ObjectReader& reader, ExploreSpace& space);

// Runs a few cases of `space` and gives a hash of all their events, the same on every host and by
// every compiler: another kernel, or another way to draw cases, gives another one. Takes
// milliseconds. Empty if the host has no room for a simulated machine.
std::string CasesFingerprint(const ExploreSpace& space);

// This build's campaign, with nothing done.
CampaignState FreshState(const CampaignPlan& plan);

// In what the two differ, for people: "--cpus is 3 there and drawn here, ..." where they are called
// "there" and "here"; empty if they are the same campaign. The shard is not part of it.
std::string Difference(const CampaignIdentity& first, const std::string& first_name,
                       const CampaignIdentity& second, const std::string& second_name);

// "sipi.explore/2" as JSON, and back. Errors: InvalidArgument naming `origin`, what is wrong with
// it, and the remedy; a file from before this schema does not say whose it is, and is refused.
std::string StateJson(const CampaignState& state);
absl::StatusOr<CampaignState> ParseState(const std::string& text, const std::string& origin);

// Whether `state`, which `origin` holds, can go on with `plan`. Error: InvalidArgument naming file,
// what differs and the remedy.
absl::Status CheckResumes(const CampaignState& state, const std::string& origin,
                          const CampaignPlan& plan);

}  // namespace sipi
