#include "guest/platform/sim/shared_memory.h"

#include <sys/mman.h>

#include <cstring>

namespace sipi::sim {
namespace {

void* MapZeroed(uint64_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? nullptr : at;
}

}  // namespace

// Zero bytes are the first state of a Line, so the kernel's zero pages are as good as constructed.
static_assert(sizeof(Line) == 32);

Memory::~Memory() {
  if (base_ != nullptr) munmap(base_, bytes_);
  if (lines_ != nullptr) munmap(lines_, bytes_ / kLineBytes * sizeof(Line));
}

bool Memory::Reserve(uint64_t bytes) {
  bytes_ = (bytes + 4095) / 4096 * 4096;
  base_ = static_cast<std::byte*>(MapZeroed(bytes_));
  lines_ = static_cast<Line*>(MapZeroed(bytes_ / kLineBytes * sizeof(Line)));
  return base_ != nullptr && lines_ != nullptr;
}

void Memory::Clear(uint64_t begin, uint64_t end) {
  memset(base_ + begin, 0, end - begin);
  for (uint64_t at = begin / kLineBytes; at * kLineBytes < end; ++at) lines_[at] = Line();
}

}  // namespace sipi::sim
