#include "vmm/kvm/binary_stats.h"

#include <unistd.h>

#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "vmm/kvm/linux_kvm.h"

namespace sipi {
namespace {

bool ReadAt(int fd, void* to, size_t bytes, uint64_t offset) {
  return pread(fd, to, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
}

}  // namespace

absl::StatusOr<uint64_t> ReadBinaryStat(int stats_fd, absl::string_view name) {
  // A header; num_desc descriptors of fixed part and name_size bytes of name; the data.
  kvm_stats_header header = {};
  if (!ReadAt(stats_fd, &header, sizeof(header), 0)) {
    return absl::DataLossError("KVM_GET_STATS_FD: short header");
  }
  const size_t stride = sizeof(kvm_stats_desc) + header.name_size;
  std::vector<char> table(stride * header.num_desc);
  if (!ReadAt(stats_fd, table.data(), table.size(), header.desc_offset)) {
    return absl::DataLossError("KVM_GET_STATS_FD: short descriptor table");
  }
  for (size_t at = 0; at < table.size(); at += stride) {
    kvm_stats_desc descriptor = {};
    memcpy(&descriptor, table.data() + at, sizeof(descriptor));
    const char* text = table.data() + at + sizeof(descriptor);
    if (name != absl::string_view(text, strnlen(text, header.name_size))) continue;
    uint64_t value = 0;
    if (!ReadAt(stats_fd, &value, sizeof(value),
                uint64_t{header.data_offset} + descriptor.offset)) {
      return absl::DataLossError(absl::StrCat("KVM_GET_STATS_FD: no data for ", name));
    }
    return value;
  }
  return absl::NotFoundError(absl::StrCat("KVM_GET_STATS_FD: this KVM has no counter ", name));
}

}  // namespace sipi
