// Opens the files that a user names to be read.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "vmm/base/errno_status.h"
#include "vmm/base/unique_fd.h"

namespace sipi {

struct RegularFile {
  UniqueFd fd;
  uint64_t bytes = 0;  // its length when it was opened; files of /proc say 0
};

// Opens `path` for reading. Errors: those of open(2) and fstat(2), and InvalidArgument for what is
// no regular file: a FIFO may have no writer, a device no end. All name the file. Any thread; waits
// for no other process.
inline absl::StatusOr<RegularFile> OpenRegularFile(const std::string& path) {
  // Not blocking, so that a FIFO without a writer is told from a file and not waited for.
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) return ErrnoStatus(errno, absl::StrCat("cannot open ", path));
  struct stat status;
  if (fstat(fd.get(), &status) != 0) return ErrnoStatus(errno, absl::StrCat("cannot stat ", path));
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is not a regular file; name one, or save to one what this gives"));
  }
  return RegularFile{std::move(fd), static_cast<uint64_t>(status.st_size)};
}

}  // namespace sipi
