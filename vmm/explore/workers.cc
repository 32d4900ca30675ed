#include "vmm/explore/workers.h"

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace sipi {
namespace {

constexpr char kRemedy[] =
    "; give fewer --jobs, or raise what limits processes and memory here (ulimit -u, ulimit -v)";

// Memory may be what is missing, so messages are made only once the threads have given theirs back.
class Crew {
 public:
  Crew(const std::function<absl::Status()>& work, std::atomic<bool>& give_up)
      : work_(work), give_up_(give_up) {}

  void Start(uint32_t count) {
    try {
      threads_.reserve(count);
      while (threads_.size() < count) {
        threads_.emplace_back([this] { Thread(); });
        const std::lock_guard lock(mutex_);
        ++started_;
      }
    } catch (const std::system_error& error) {
      NotMade(error.code().value());
    } catch (const std::bad_alloc&) {
      NotMade(ENOMEM);
    }
  }

  void Wait(const std::function<void()>& tick) {
    std::unique_lock lock(mutex_);
    while (ended_ != started_) {
      changed_.wait_for(lock, std::chrono::seconds(1));
      if (!tick) continue;
      lock.unlock();
      try {
        tick();
      } catch (const std::bad_alloc&) {
        OutOfMemory();
      }
      lock.lock();
    }
    lock.unlock();
    for (std::thread& thread : threads_) thread.join();
  }

  absl::Status Result(uint32_t count) {
    if (not_made_ != 0) {
      return absl::ResourceExhaustedError(
          absl::StrCat("--jobs: thread ", started_ + 1, " of ", count,
                       " cannot be made: ", std::strerror(not_made_), kRemedy));
    }
    if (out_of_memory_) {
      return absl::ResourceExhaustedError(
          absl::StrCat("--jobs: there is no memory for ", count, " threads", kRemedy));
    }
    return std::move(status_);
  }

 private:
  void Thread() {
    absl::Status status;
    try {
      status = work_();
    } catch (const std::bad_alloc&) {
      OutOfMemory();
    }
    if (!status.ok()) give_up_.store(true, std::memory_order_relaxed);
    const std::lock_guard lock(mutex_);
    if (status_.ok()) status_ = std::move(status);
    ++ended_;
    changed_.notify_all();
  }

  void NotMade(int error) {
    not_made_ = error;
    give_up_.store(true, std::memory_order_relaxed);
  }

  void OutOfMemory() {
    give_up_.store(true, std::memory_order_relaxed);
    const std::lock_guard lock(mutex_);
    out_of_memory_ = true;
  }

  const std::function<absl::Status()>& work_;
  std::atomic<bool>& give_up_;
  std::vector<std::thread> threads_;
  int not_made_ = 0;  // errno
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  uint32_t started_ = 0;
  uint32_t ended_ = 0;
  bool out_of_memory_ = false;
  absl::Status status_;
};

}  // namespace

absl::Status RunWorkers(uint32_t count, const std::function<absl::Status()>& work,
                        const std::function<void()>& tick, std::atomic<bool>& give_up) {
  Crew crew(work, give_up);
  crew.Start(count);
  crew.Wait(tick);
  return crew.Result(count);
}

}  // namespace sipi
