// Threads that share work: on a host that has no room for them, and with work that ends in error.
#include "vmm/explore/workers.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <new>
#include <string>
#include <thread>

namespace sipi {
namespace {

std::string Message(const absl::Status& status) { return std::string(status.message()); }

TEST(Workers, EachRunsOnceAndTheLastEndsIt) {
  std::atomic<int> ran{0};
  std::atomic<bool> give_up{false};
  const auto work = [&ran] {
    ++ran;
    return absl::OkStatus();
  };
  EXPECT_TRUE(RunWorkers(5, work, nullptr, give_up).ok());
  EXPECT_EQ(ran, 5);
  EXPECT_FALSE(give_up);
}

TEST(Workers, ThatCannotBeMadeAreAnErrorAndNoAbort) {
  pthread_attr_t old;
  pthread_attr_t huge;
  ASSERT_EQ(pthread_getattr_default_np(&old), 0);
  ASSERT_EQ(pthread_attr_init(&huge), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&huge, size_t{1} << 50), 0);
  ASSERT_EQ(pthread_setattr_default_np(&huge), 0);
  std::atomic<bool> give_up{false};
  const absl::Status status = RunWorkers(
      3, [] { return absl::OkStatus(); }, nullptr, give_up);
  ASSERT_EQ(pthread_setattr_default_np(&old), 0);
  pthread_attr_destroy(&huge);
  pthread_attr_destroy(&old);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(Message(status).rfind("--jobs: thread 1 of 3 cannot be made: ", 0), 0u) << status;
  EXPECT_NE(Message(status).find("ulimit -u"), std::string::npos);
  EXPECT_TRUE(give_up);
}

// The others see that it is over; nobody waits for more than they need to return.
TEST(Workers, AnErrorOfOneEndsAll) {
  std::atomic<int> next{0};
  std::atomic<bool> give_up{false};
  const auto fails = [&] {
    if (next++ == 0) return absl::ResourceExhaustedError("no room");
    while (!give_up) std::this_thread::yield();
    return absl::OkStatus();
  };
  EXPECT_EQ(Message(RunWorkers(3, fails, nullptr, give_up)), "no room");

  next = 0;
  give_up = false;
  const auto throws = [&] {
    if (next++ == 0) throw std::bad_alloc();
    while (!give_up) std::this_thread::yield();
    return absl::OkStatus();
  };
  EXPECT_NE(Message(RunWorkers(3, throws, nullptr, give_up)).find("no memory for 3 threads"),
            std::string::npos);
}

}  // namespace
}  // namespace sipi
