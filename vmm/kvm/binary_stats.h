// Reads one counter out of a KVM statistics descriptor. Source: KVM API, KVM_GET_STATS_FD.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sipi {

// The first value of the counter `name`. Errors: NotFound, or DataLoss for a malformed descriptor.
absl::StatusOr<uint64_t> ReadBinaryStat(int stats_fd, absl::string_view name);

}  // namespace sipi
