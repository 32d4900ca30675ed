// An image file's bytes with checked access, and its name for errors. Images are untrusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "vmm/base/status_macros.h"

namespace sipi {

class ImageBytes {
 public:
  // Both must outlive this.
  ImageBytes(std::span<const std::byte> bytes, absl::string_view origin)
      : bytes_(bytes), origin_(origin) {}

  uint64_t size() const { return bytes_.size(); }

  // InvalidArgument "origin: offset 0x40: what".
  absl::Status Error(uint64_t offset, absl::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat(origin_, ": offset 0x", absl::Hex(offset), ": ", what));
  }

  // Error: InvalidArgument naming `what`, if the file ends before.
  absl::StatusOr<std::span<const std::byte>> Bytes(uint64_t offset, uint64_t count,
                                                   absl::string_view what) const {
    if (offset > bytes_.size() || count > bytes_.size() - offset) {
      return Error(offset,
                   absl::StrCat(what, " of ", count, " bytes runs past the end of the file (",
                                bytes_.size(), " bytes); the file is cut off or damaged"));
    }
    return bytes_.subspan(offset, count);
  }

  template <class T>
  absl::StatusOr<T> Get(uint64_t offset, absl::string_view what) const {
    static_assert(std::is_trivially_copyable_v<T>);
    ASSIGN_OR_RETURN(const auto from, Bytes(offset, sizeof(T), what));
    T value;
    memcpy(&value, from.data(), sizeof(T));
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  absl::string_view origin_;
};

}  // namespace sipi
