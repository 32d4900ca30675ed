// A thread of control that does not run: where it goes on.
#pragma once

#include <cstddef>

namespace sipi::sim {

struct Suspended {
  void* sp = nullptr;
  std::byte* stack = nullptr;  // its lowest address
  void* fake_stack = nullptr;  // the sanitizer's
};

}  // namespace sipi::sim
