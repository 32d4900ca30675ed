// Reads a small text file whole.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "vmm/base/errno_status.h"
#include "vmm/base/regular_file.h"

namespace sipi {

// The contents of `path`, a regular file. Never reads more than max_bytes + 1 bytes. Errors: those
// of OpenRegularFile and read(2), and InvalidArgument for a longer file; all name the file. Any
// thread; waits for the file system only.
inline absl::StatusOr<std::string> ReadTextFile(const std::string& path, uint64_t max_bytes) {
  const absl::StatusOr<RegularFile> file = OpenRegularFile(path);
  if (!file.ok()) return file.status();
  constexpr size_t kChunk = size_t{64} << 10;
  std::string text;
  while (text.size() <= max_bytes) {
    const size_t used = text.size();
    text.resize(used + std::min<uint64_t>(kChunk + used, max_bytes + 1 - used));
    const ssize_t count = read(file->fd.get(), text.data() + used, text.size() - used);
    if (count < 0 && errno != EINTR) return ErrnoStatus(errno, absl::StrCat("cannot read ", path));
    text.resize(used + (count > 0 ? static_cast<size_t>(count) : 0));
    if (count == 0) return text;
  }
  return absl::InvalidArgumentError(absl::StrCat(path, ": is longer than ", max_bytes, " bytes"));
}

}  // namespace sipi
