#include "vmm/kvm/ioctl.h"

#include <sys/ioctl.h>

#include <atomic>
#include <cerrno>

namespace sipi {

std::shared_ptr<const IoctlHook> FailNthIoctl(unsigned long request, int k, int error) {
  auto calls = std::make_shared<std::atomic<int>>(0);
  return std::make_shared<const IoctlHook>([=](unsigned long asked) -> std::optional<IoctlAnswer> {
    if (asked != request || calls->fetch_add(1) + 1 != k) return std::nullopt;
    return IoctlAnswer{.result = -1, .error = error};
  });
}

int IoctlFd::Call(unsigned long request, void* argument) const {
  if (hook_ != nullptr) [[unlikely]] {
    if (const auto answer = (*hook_)(request)) {
      errno = answer->error;
      return answer->result;
    }
  }
  return ioctl(fd_.get(), request, argument);
}

int IoctlFd::Call(unsigned long request, uint64_t argument) const {
  return Call(request, reinterpret_cast<void*>(argument));
}

}  // namespace sipi
