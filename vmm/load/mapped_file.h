// A file's bytes without a copy of them: payloads may be larger than the guest's memory.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace sipi {

class MappedFile {
 public:
  // Maps a regular file, read-only. Errors: those of open(2), fstat(2) and mmap(2), and
  // InvalidArgument for what is no regular file or empty; all name the file. Whoever shortens the
  // file while it is mapped ends this process with SIGBUS (mmap(2)).
  static absl::StatusOr<MappedFile> Open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::span<const std::byte> bytes_;
};

}  // namespace sipi
