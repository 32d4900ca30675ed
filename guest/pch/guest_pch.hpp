// Compiled once for each build of the guest kernel: these headers are most of what its files cost
// to compile. A file still includes what it uses: .ci/run's clang-tidy does without.
// Precompiled as a main file, where g++ takes no pragma once; nothing includes it twice.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "guest/kernel/kernel.h"
