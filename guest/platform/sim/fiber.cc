#include "guest/platform/sim/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

extern "C" {
void sipi_sim_switch(void** leave, void* enter);
void sipi_sim_fiber_start();

// AddressSanitizer's interface, null in a build without it (sanitizer/common_interface_defs.h,
// asan_interface.h).
[[gnu::weak]] void __sanitizer_start_switch_fiber(void** fake_stack_save, const void* bottom,
                                                  size_t size);
[[gnu::weak]] void __sanitizer_finish_switch_fiber(void* fake_stack_save, const void** bottom_old,
                                                   size_t* size_old);
[[gnu::weak]] void __asan_unpoison_memory_region(const volatile void* address, size_t size);
}

namespace sipi::sim {
namespace {

constexpr size_t kCacheLineBytes = 64;
constexpr size_t kColors = 61;  // odd, so that CPUs of equal distance do not meet

size_t PageBytes() {
  const long bytes = sysconf(_SC_PAGESIZE);
  return bytes > 0 ? static_cast<size_t>(bytes) : 4096;
}

void SetOwner(std::byte* stack, void* owner) {
  memcpy(stack + kStackBytes - sizeof(void*), &owner, sizeof(void*));
}

}  // namespace

StackPool::~StackPool() {
  constexpr size_t kBytes = (kStacksPerChunk + 1) * kStackBytes;
  for (const Chunk& chunk : chunks_) {
    // The addresses may come back as something else.
    if (__asan_unpoison_memory_region != nullptr) {
      __asan_unpoison_memory_region(chunk.mapped, kBytes);
    }
    munmap(chunk.mapped, kBytes);
  }
}

bool StackPool::Reserve(size_t count) {
  constexpr size_t kBytes = (kStacksPerChunk + 1) * kStackBytes;
  while (size() < count) {
    void* at = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return false;
    // Large pages would touch 2 MiB for each CPU that runs. An old kernel may refuse: no harm.
    (void)madvise(at, kBytes, MADV_NOHUGEPAGE);
    auto* const mapped = static_cast<std::byte*>(at);
    const auto address = reinterpret_cast<uintptr_t>(mapped);
    chunks_.push_back({mapped, mapped + (kStackBytes - address % kStackBytes) % kStackBytes, 0});
  }
  return true;
}

std::byte* StackPool::Get(size_t index) {
  if (!Reserve(index + 1)) return nullptr;
  Chunk& chunk = chunks_[index / kStacksPerChunk];
  std::byte* stack = chunk.stacks + index % kStacksPerChunk * kStackBytes;
  const uint64_t bit = uint64_t{1} << index % kStacksPerChunk;
  if ((chunk.guarded & bit) != 0) return stack;
  if (mprotect(stack, PageBytes(), PROT_NONE) != 0) return nullptr;
  chunk.guarded |= bit;
  return stack;
}

Suspended Fiber::Prepare(std::byte* stack, void (*entry)(void*), void* argument, size_t color) {
  // What an abandoned run has left there is void.
  if (__asan_unpoison_memory_region != nullptr) {
    __asan_unpoison_memory_region(stack + PageBytes(), kStackBytes - PageBytes());
  }
  std::byte* const end = stack + kStackBytes;
  // The frame that sipi_sim_switch takes down: R15 to RBX, RBP, the return address.
  auto* top = reinterpret_cast<uint64_t*>(end - (1 + color % kColors) * kCacheLineBytes);
  *--top = 0;  // sipi_sim_fiber_start calls with a stack aligned to 16 (psABI, 3.2.2)
  *--top = 0;
  *--top = reinterpret_cast<uint64_t>(&sipi_sim_fiber_start);
  *--top = 0;                                     // RBP
  *--top = 0;                                     // RBX
  *--top = reinterpret_cast<uint64_t>(entry);     // R12
  *--top = reinterpret_cast<uint64_t>(argument);  // R13
  *--top = 0;                                     // R14
  *--top = 0;                                     // R15
  return {top, stack, nullptr};
}

void Fiber::Start(std::byte* stack, void (*entry)(void*), void* owner, size_t color) {
  stack_ = stack;
  sp_ = Prepare(stack, entry, owner, color).sp;
  SetOwner(stack, owner);
  fake_stack_ = nullptr;
}

void Fiber::SwitchStack(Suspended& from, const Suspended& to, void* owner) {
  from.stack = stack_;
  stack_ = to.stack;
  SetOwner(to.stack, owner);
  if (__sanitizer_start_switch_fiber != nullptr) {
    __sanitizer_start_switch_fiber(&from.fake_stack, to.stack, kStackBytes);
  }
  sipi_sim_switch(&from.sp, to.sp);
  // Another fiber's `this` may be meant by now: only `from` is the thread's own.
  if (__sanitizer_finish_switch_fiber != nullptr) {
    __sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr);
  }
}

void Fiber::ThreadArrived() {
  if (__sanitizer_finish_switch_fiber != nullptr) {
    __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
  }
}

void Fiber::Enter() {
  if (__sanitizer_start_switch_fiber != nullptr) {
    __sanitizer_start_switch_fiber(&scheduler_fake_stack_, stack_, kStackBytes);
  }
  sipi_sim_switch(&scheduler_sp_, sp_);
  if (__sanitizer_finish_switch_fiber != nullptr) {
    __sanitizer_finish_switch_fiber(scheduler_fake_stack_, nullptr, nullptr);
  }
}

void Fiber::Leave() {
  if (__sanitizer_start_switch_fiber != nullptr) {
    __sanitizer_start_switch_fiber(&fake_stack_, scheduler_stack_, scheduler_stack_bytes_);
  }
  sipi_sim_switch(&sp_, scheduler_sp_);
  Arrived();
}

void Fiber::Arrived() {
  if (__sanitizer_finish_switch_fiber != nullptr) {
    __sanitizer_finish_switch_fiber(fake_stack_, &scheduler_stack_, &scheduler_stack_bytes_);
  }
}

}  // namespace sipi::sim
