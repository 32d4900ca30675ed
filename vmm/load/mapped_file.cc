#include "vmm/load/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "vmm/base/errno_status.h"
#include "vmm/base/unique_fd.h"

namespace sipi {

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  // Not blocking, so that a FIFO without a writer is told from a file and not waited for.
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return ErrnoStatus(errno, absl::StrCat("cannot open ", path));
  struct stat status;
  if (fstat(fd.get(), &status) != 0) return ErrnoStatus(errno, absl::StrCat("cannot stat ", path));
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is not a regular file"));
  }
  if (status.st_size == 0) return absl::InvalidArgumentError(absl::StrCat(path, ": is empty"));
  const size_t size = static_cast<size_t>(status.st_size);
  void* const at = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (at == MAP_FAILED) return ErrnoStatus(errno, absl::StrCat("cannot map ", path));
  return MappedFile({static_cast<const std::byte*>(at), size});
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : bytes_(std::exchange(other.bytes_, std::span<const std::byte>())) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace sipi
