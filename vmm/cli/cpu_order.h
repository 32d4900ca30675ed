// The order in which APs are brought up: --order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "vmm/cpu/topology.h"

namespace sipi {

// Every CPU of `topology` but CPU 0, ordered by `spec`:
//   id             by CPU number
//   reverse        by CPU number, downwards
//   node           node by node, by number within a node
//   siblings-last  the first thread of every core, then the second of every core, ...
//   random         a permutation that depends on `seed` alone
//   file:PATH      CPU numbers from a file, apart by spaces, commas or lines; '#' starts a comment
// Errors: InvalidArgument naming the flag, or file and line, and the remedy.
absl::StatusOr<std::vector<uint32_t>> MakeCpuOrder(const std::string& spec,
                                                   const Topology& topology, uint64_t seed);

// --apic-ids may make CPU 0, which stays, the second thread of its core; what switches second
// threads off refuses that.
absl::Status CheckBootCpuIsPrimary(const Topology& topology);

}  // namespace sipi
