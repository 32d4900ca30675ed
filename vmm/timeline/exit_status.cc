#include "vmm/base/exit_codes.h"
#include "vmm/timeline/run_record.h"

namespace sipi {

int ExitStatus(const RunRecord& record) {
  ExitCode code = ExitCode::kError;
  switch (record.outcome) {
    case Outcome::kComplete:
      code = record.serial_failed ? ExitCode::kError : ExitCode::kOk;
      break;
    case Outcome::kPartial:
      code = ExitCode::kPartial;
      break;
    case Outcome::kGuestFault:
      code = ExitCode::kGuestFault;
      break;
    case Outcome::kAllHalted:
      code = ExitCode::kAllHalted;
      break;
    case Outcome::kTimeLimit:
      code = ExitCode::kTimeLimit;
      break;
    case Outcome::kGuestReset:
      code = ExitCode::kGuestReset;
      break;
    case Outcome::kGuestExit:
      return record.payload ? record.payload->exit_status : static_cast<int>(code);
    case Outcome::kInterrupted:
      return static_cast<int>(ExitCode::kSignalBase) + record.signal;
  }
  return static_cast<int>(code);
}

}  // namespace sipi
