#include "vmm/machine/vcpu_factory.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace sipi {
namespace {

// More do not help: KVM makes vCPUs of one VM under a lock for part of the time.
constexpr uint32_t kMaxThreads = 4;

uint32_t UsableCores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<uint32_t>(std::max(1, CPU_COUNT(&set)));
}

}  // namespace

VcpuFactory::~VcpuFactory() { Stop(); }

absl::Status VcpuFactory::Start() {
  const uint32_t count = std::min({UsableCores(), kMaxThreads, wanted_});
  for (uint32_t i = 0; i < count; ++i) {
    pthread_t thread;
    const int error = pthread_create(&thread, nullptr, &VcpuFactory::ThreadMain, this);
    if (error == 0) {
      threads_.push_back(thread);
    } else if (i == 0) {
      return absl::ResourceExhaustedError(
          absl::StrCat("pthread_create for the vCPU factory: ", std::strerror(error),
                       "; raise the limit of threads (ulimit -u, pids.max)"));
    }
  }
  return absl::OkStatus();
}

void* VcpuFactory::ThreadMain(void* self) {
  pthread_setname_np(pthread_self(), "vcpu-factory");
  static_cast<VcpuFactory*>(self)->Work();
  return nullptr;
}

void VcpuFactory::Work() {
  while (!stopping_.load(std::memory_order_acquire)) {
    const uint32_t cpu = next_.fetch_add(1, std::memory_order_relaxed);
    if (cpu > wanted_) return;
    if (absl::Status status = make_(CpuNumber(cpu)); !status.ok()) {
      bool first;
      {
        const std::lock_guard lock(mutex_);
        first = !stopping_.exchange(true, std::memory_order_acq_rel);
        changed_.notify_all();
      }
      if (first) fail_(std::move(status));
      return;
    }
    if (made_.fetch_add(1, std::memory_order_acq_rel) + 1 == wanted_) {
      const std::lock_guard lock(mutex_);
      changed_.notify_all();
    }
  }
}

bool VcpuFactory::WaitDone() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return done() || stopping_.load(std::memory_order_acquire); });
  return done();
}

void VcpuFactory::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_.store(true, std::memory_order_release);
    changed_.notify_all();
  }
  for (const pthread_t thread : threads_) pthread_join(thread, nullptr);
  threads_.clear();
}

}  // namespace sipi
