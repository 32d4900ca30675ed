#include "vmm/load/image_file.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "vmm/base/errno_status.h"
#include "vmm/base/regular_file.h"
#include "vmm/base/status_macros.h"

namespace sipi {

absl::StatusOr<ImageFile> ImageFile::Read(const std::string& path) {
  ASSIGN_OR_RETURN(const RegularFile file, OpenRegularFile(path));
  const uint64_t size = file.bytes;
  if (size == 0) return absl::InvalidArgumentError(absl::StrCat(path, ": is empty"));
  if (size > kMaxImageBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": has ", size, " bytes; an image may have ", kMaxImageBytes, ", strip it"));
  }
  auto bytes = std::make_unique_for_overwrite<std::byte[]>(size);
  for (size_t have = 0; have < size;) {
    const ssize_t got = read(file.fd.get(), bytes.get() + have, size - have);
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
