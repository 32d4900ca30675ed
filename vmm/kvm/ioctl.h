// The one place that calls ioctl(2) on KVM's descriptors, with a hook through which tests make a
// call fail.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "vmm/base/unique_fd.h"

namespace sipi {

// What an ioctl returns instead of being made: its result, and errno if that is -1.
struct IoctlAnswer {
  int result = -1;
  int error = 0;
};

// Asked before each ioctl with its request (e.g. KVM_CREATE_VCPU); no answer lets the call through.
// May be called from many threads at once. Null in production.
using IoctlHook = std::function<std::optional<IoctlAnswer>(unsigned long request)>;

// A hook that fails the k-th (from 1) call of `request` with `error`, and lets all else through.
std::shared_ptr<const IoctlHook> FailNthIoctl(unsigned long request, int k, int error);

// A descriptor that takes KVM ioctls.
class IoctlFd {
 public:
  IoctlFd() = default;
  IoctlFd(UniqueFd fd, std::shared_ptr<const IoctlHook> hook)
      : fd_(std::move(fd)), hook_(std::move(hook)) {}

  // As ioctl(2): the result, or -1 and errno.
  int Call(unsigned long request, void* argument) const;
  int Call(unsigned long request, uint64_t argument = 0) const;

  int fd() const { return fd_.get(); }
  const std::shared_ptr<const IoctlHook>& hook() const { return hook_; }

 private:
  UniqueFd fd_;
  std::shared_ptr<const IoctlHook> hook_;
};

}  // namespace sipi
