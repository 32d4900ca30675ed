#include "vmm/explore/remains.h"

#include "absl/strings/str_cat.h"

namespace sipi {

std::string CheckEnd(const Remains& remains, const sim::End& end) {
  switch (end.kind) {
    case sim::EndKind::kGuestExit:
      break;
    case sim::EndKind::kAllHalted:
      return "all CPUs are halted and nothing can wake them";
    case sim::EndKind::kTimeLimit:
      return "it does not converge";
    default:
      return end.text;
  }
  const abi::ResultPage& result = remains.result();
  switch (static_cast<abi::GuestStatus>(result.status)) {
    case abi::GuestStatus::kDone:
      return "";
    case abi::GuestStatus::kPanic:
      return absl::StrCat("panic on CPU ", result.panic_cpu, ", line ", result.panic_line, ": ",
                          result.panic_text);
    case abi::GuestStatus::kFault:
      return absl::StrCat("exception ", result.fault_vector, " on CPU ", result.fault_cpu);
    default:
      return "the guest ended before it was done";
  }
}

}  // namespace sipi
