// Compiled once for each of the larger test programs: GoogleTest is most of what their files cost
// to compile. A test file still includes what it uses. Precompiled as a main file, where g++ takes
// no pragma once; nothing includes it twice.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>
