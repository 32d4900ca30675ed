#include "vmm/timeline/outcome.h"

namespace sipi {

const char* Name(Outcome outcome) {
  switch (outcome) {
    case Outcome::kComplete:
      return "complete";
    case Outcome::kPartial:
      return "partial";
    case Outcome::kGuestFault:
      return "guest-fault";
    case Outcome::kAllHalted:
      return "all-halted";
    case Outcome::kTimeLimit:
      return "time-limit";
    case Outcome::kInterrupted:
      return "interrupted";
    case Outcome::kGuestExit:
      return "guest-exit";
    case Outcome::kGuestReset:
      return "guest-reset";
  }
  return "?";
}

std::optional<Outcome> OutcomeByName(std::string_view name) {
  for (const Outcome outcome :
       {Outcome::kComplete, Outcome::kPartial, Outcome::kGuestFault, Outcome::kAllHalted,
        Outcome::kTimeLimit, Outcome::kInterrupted, Outcome::kGuestExit, Outcome::kGuestReset}) {
    if (name == Name(outcome)) return outcome;
  }
  return std::nullopt;
}

}  // namespace sipi
