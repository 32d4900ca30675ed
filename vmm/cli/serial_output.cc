#include "vmm/cli/serial_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "vmm/base/errno_status.h"

namespace sipi {

absl::StatusOr<SerialOutput> OpenSerial(const std::string& spec, const std::string& fallback) {
  const std::string& target = spec.empty() ? fallback : spec;
  SerialOutput output;
  if (target == "none") return output;
  const bool standard = target == "-" || target == "/dev/stdout";
  output.fd =
      UniqueFd(standard ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)
                        : open(target.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666));
  if (!output.fd.valid()) {
    return ErrnoStatus(errno, absl::StrCat("--serial: cannot open ", target),
                       "name a file that can be written, - for standard output, or none");
  }
  // O_NONBLOCK was for the open alone: of a FIFO that nobody reads it would never return.
  if (!standard) fcntl(output.fd.get(), F_SETFL, 0);
  output.holds_old_bytes = !standard;
  return output;
}

}  // namespace sipi
