// What must hold when an explored run is over.
#pragma once

#include <string>

#include "guest/platform/sim/simulator.h"
#include "vmm/explore/explore_case.h"

namespace sipi {

// Empty if all is well; else what is wrong, in a sentence.
//
//   - the run converged: the guest ended by itself, without panic or exception
//   - every CPU that no fault was injected into is online, at the last state of the table, by each
//     of its steps once and in order; nobody that failed counts as online
//   - the counts of online CPUs, of cores and of packages agree with the CPUs
//   - nobody holds the trampoline's lock
//   - TSC checks of two APs never overlap; siblings are kicked after their primaries are alive
//   - every online CPU answered its IPI
std::string CheckRun(const ExploreCase& explored, const ArenaLayout& arena,
                     const sim::Simulator& simulator, const sim::End& end);

// The last `count` events of the run, one line each.
std::string LastEvents(const ExploreCase& explored, const ArenaLayout& arena,
                       const sim::Simulator& simulator, size_t count);

}  // namespace sipi
