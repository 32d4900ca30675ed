// What must hold when an explored run is over.
#pragma once

#include <string>

#include "guest/platform/sim/simulator.h"
#include "vmm/explore/explore_case.h"

namespace sipi {

// What must hold despite the faults, when they end (abi::kMarkSettle). Empty if all is well; else
// what is wrong, in a sentence.
//
//   - every CPU that no fault was injected into is online, at the last state of the table, by each
//     of its steps once
//   - every other one that is not online has an error; nobody that failed counts as online
//   - steps are entered in order and do their work; what was done by a CPU that failed is undone in
//     reverse order, each step once
//   - nobody is waited for in vain but who is late, dead or was never reached
//   - the counts of online CPUs, of cores and of packages agree with the CPUs
//   - TSC checks of two APs never overlap; siblings are kicked after their primaries are alive
//   - every online CPU answered its IPI
std::string CheckBeforeSettling(const ExploreCase& explored, const ArenaLayout& arena,
                                const sim::Simulator& simulator);

// What must hold at the end, as above. Bring-up:
//
//   - the guest ended by itself, without panic or exception
//   - once the faults had ended every CPU that does not hang came online, at its next try, and is
//     not said to have failed
//   - the counts agree; nobody holds the trampoline's lock
std::string CheckRun(const ExploreCase& explored, const ArenaLayout& arena,
                     const sim::Simulator& simulator, const sim::End& end);

// The last `count` events of the run, one line each.
std::string LastEvents(const ExploreCase& explored, const ArenaLayout& arena,
                       const sim::Simulator& simulator, size_t count);

}  // namespace sipi
