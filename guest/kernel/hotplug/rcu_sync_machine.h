// The states of rcu_sync (Linux: kernel/rcu/sync.c): whether the readers of something may take
// their fast path, which is safe as soon as a grace period has passed since somebody wanted them
// not to. Plain data, no waiting: the caller holds a lock around each call and does what it is
// told.
//
//            Enter                    GpPassed
//   IDLE ------------> ENTER -------------------------> PASSED <--------+
//     ^                                                   | last Exit   |
//     |  GpPassed, nobody inside                          v             | GpPassed, somebody inside
//     +------------------------------------------------- EXIT <-----+   |
//                                                         | |       |   |
//                     last Exit of those who came in EXIT | +-------|---+
//                                                         v         |
//                                                       REPLAY -----+ GpPassed: one more
#pragma once

#include <cstdint>

namespace sipi {

class RcuSyncMachine {
 public:
  enum class State : uint32_t { kIdle = 0, kEnter = 1, kPassed = 2, kExit = 3, kReplay = 4 };

  // What the caller of Enter has to do before it may rely on slow readers.
  enum class Entry : uint32_t {
    kNone,             // nothing: they are slow already
    kWaitGracePeriod,  // wait for one, then call GpPassed: it is the first
    kWaitPassed,       // wait until the first one is done with that: Passed()
  };
  // What the caller of Exit and GpPassed has to do.
  enum class Action : uint32_t {
    kNone,
    kWake,  // those who wait for Passed()
    kCall,  // have GpPassed called after a grace period
  };

  State state() const { return state_; }
  bool Passed() const { return state_ >= State::kPassed; }
  uint32_t users() const { return users_; }

  Entry Enter() {
    ++users_;
    if (state_ == State::kIdle) {
      state_ = State::kEnter;
      return Entry::kWaitGracePeriod;
    }
    return Passed() ? Entry::kNone : Entry::kWaitPassed;
  }

  Action Exit() {
    if (--users_ != 0) return Action::kNone;
    if (state_ == State::kPassed) {
      state_ = State::kExit;
      return Action::kCall;
    }
    // A grace period is under way that began before these users left: another has to follow.
    if (state_ == State::kExit) state_ = State::kReplay;
    return Action::kNone;
  }

  Action GpPassed() {
    if (users_ != 0) {
      state_ = State::kPassed;
      return Action::kWake;
    }
    if (state_ == State::kReplay) {
      state_ = State::kExit;
      return Action::kCall;
    }
    state_ = State::kIdle;
    return Action::kNone;
  }

 private:
  State state_ = State::kIdle;
  uint32_t users_ = 0;
};

}  // namespace sipi
