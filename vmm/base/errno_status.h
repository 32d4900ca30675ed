// Turns errno into absl::Status, once, with what was done and what the user can do about it.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace sipi {

// "what: text of errno (ENAME)", followed by "; remedy" if one is given. `what` names the ioctl or
// the file, e.g. "KVM_CREATE_VCPU(id=3)". The code follows from errno as absl::ErrnoToStatus has
// it. Precondition: error is not 0.
absl::Status ErrnoStatus(int error, absl::string_view what, absl::string_view remedy = "");

}  // namespace sipi
