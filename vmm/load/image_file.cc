#include "vmm/load/image_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "vmm/base/errno_status.h"
#include "vmm/base/unique_fd.h"

namespace sipi {

absl::StatusOr<ImageFile> ImageFile::Read(const std::string& path) {
  // Not blocking, so that a FIFO without a writer is told from a file and not waited for.
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return ErrnoStatus(errno, absl::StrCat("cannot open ", path));
  struct stat status;
  if (fstat(fd.get(), &status) != 0) return ErrnoStatus(errno, absl::StrCat("cannot stat ", path));
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is not a regular file"));
  }
  const uint64_t size = static_cast<uint64_t>(status.st_size);
  if (size == 0) return absl::InvalidArgumentError(absl::StrCat(path, ": is empty"));
  if (size > kMaxImageBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": has ", size, " bytes; an image may have ", kMaxImageBytes, ", strip it"));
  }
  auto bytes = std::make_unique_for_overwrite<std::byte[]>(size);
  for (size_t have = 0; have < size;) {
    const ssize_t got = read(fd.get(), bytes.get() + have, size - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, absl::StrCat("cannot read ", path));
    if (got == 0) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": ended at byte ", have, " of ", size,
                                                     " while it was read; try again"));
    }
    have += static_cast<size_t>(got);
  }
  return ImageFile(std::move(bytes), size);
}

}  // namespace sipi
