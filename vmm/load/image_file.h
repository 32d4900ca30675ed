// An image as a file holds it, read into memory: whoever changes or shortens the file later changes
// nothing for a machine that loads the image again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace sipi {

inline constexpr uint64_t kMaxImageBytes = uint64_t{1} << 30;

class ImageFile {
 public:
  // Reads a regular file. Errors: those of OpenRegularFile and read(2), and InvalidArgument for
  // what is empty or above kMaxImageBytes; all name the file.
  static absl::StatusOr<ImageFile> Read(const std::string& path);

  std::span<const std::byte> bytes() const { return {bytes_.get(), size_}; }

 private:
  ImageFile(std::unique_ptr<std::byte[]> bytes, size_t size)
      : bytes_(std::move(bytes)), size_(size) {}

  std::unique_ptr<std::byte[]> bytes_;
  size_t size_;
};

}  // namespace sipi
