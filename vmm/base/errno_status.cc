#include "vmm/base/errno_status.h"

#include <cstring>

#include "absl/strings/str_cat.h"

namespace sipi {

absl::Status ErrnoStatus(int error, absl::string_view what, absl::string_view remedy) {
  const char* name = strerrorname_np(error);
  const char* text = strerrordesc_np(error);
  return absl::Status(
      absl::ErrnoToStatusCode(error),
      absl::StrCat(what, ": ", text != nullptr ? text : "unknown error", " (",
                   name != nullptr ? name : "?", ")", remedy.empty() ? "" : "; ", remedy));
}

}  // namespace sipi
