// Compiled once for each of the VMM's larger libraries: these headers are most of what their files
// cost to compile. A file still includes what it uses: .ci/run's clang-tidy does without.
// Precompiled as a main file, where g++ takes no pragma once; nothing includes it twice.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
