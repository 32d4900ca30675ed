// The state machines of hotplug, on the host: rcu_sync, and a walk over steps with its rollback.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "guest/kernel/hotplug/rcu_sync_machine.h"
#include "guest/kernel/hotplug/walk.h"

namespace sipi {
namespace {

using Action = RcuSyncMachine::Action;
using Entry = RcuSyncMachine::Entry;
using State = RcuSyncMachine::State;

TEST(RcuSync, OnlyTheFirstOfARowWaitsForAGracePeriod) {
  RcuSyncMachine machine;
  EXPECT_EQ(machine.Enter(), Entry::kWaitGracePeriod);
  EXPECT_EQ(machine.state(), State::kEnter);
  EXPECT_EQ(machine.Enter(), Entry::kWaitPassed) << "another, before the grace period is over";
  EXPECT_EQ(machine.GpPassed(), Action::kWake);
  EXPECT_EQ(machine.state(), State::kPassed);
  EXPECT_EQ(machine.Enter(), Entry::kNone);
  EXPECT_EQ(machine.Exit(), Action::kNone);
  EXPECT_EQ(machine.Exit(), Action::kNone);
  EXPECT_EQ(machine.Exit(), Action::kCall) << "the last one";
  EXPECT_EQ(machine.state(), State::kExit);
  EXPECT_EQ(machine.Enter(), Entry::kNone) << "readers are still slow";
  EXPECT_EQ(machine.GpPassed(), Action::kWake) << "somebody is inside again";
  EXPECT_EQ(machine.state(), State::kPassed);
  EXPECT_EQ(machine.Exit(), Action::kCall);
  EXPECT_EQ(machine.GpPassed(), Action::kNone);
  EXPECT_EQ(machine.state(), State::kIdle);
  EXPECT_EQ(machine.Enter(), Entry::kWaitGracePeriod);
}

TEST(RcuSync, WhoCameAndWentWhileTheCallbackIsUnderWayGetsAGracePeriodOfTheirOwn) {
  RcuSyncMachine machine;
  (void)machine.Enter();
  (void)machine.GpPassed();
  EXPECT_EQ(machine.Exit(), Action::kCall);
  (void)machine.Enter();
  EXPECT_EQ(machine.Exit(), Action::kNone) << "the callback is queued already";
  EXPECT_EQ(machine.state(), State::kReplay);
  (void)machine.Enter();
  EXPECT_EQ(machine.Exit(), Action::kNone);
  EXPECT_EQ(machine.state(), State::kReplay);
  EXPECT_EQ(machine.GpPassed(), Action::kCall) << "it began before they left";
  EXPECT_EQ(machine.state(), State::kExit);
  EXPECT_EQ(machine.GpPassed(), Action::kNone);
  EXPECT_EQ(machine.state(), State::kIdle);
}

TEST(RcuSync, LeavingBeforeTheFirstGracePeriodIsOverEndsInIdle) {
  RcuSyncMachine machine;
  (void)machine.Enter();
  EXPECT_EQ(machine.Exit(), Action::kNone);
  EXPECT_EQ(machine.state(), State::kEnter);
  EXPECT_EQ(machine.GpPassed(), Action::kNone);
  EXPECT_EQ(machine.state(), State::kIdle);
}

// All walks of some length: readers are fast in IDLE only, there is at most one grace period under
// way, and IDLE is reached only by one that began after the last user had left.
class RcuSyncWalk {
 public:
  void Go(uint32_t depth) {
    if (depth == 0) return;
    if (machine_.users() < 3) Branch(depth, [](RcuSyncWalk& w) { w.Enter(); });
    if (machine_.users() > 0) Branch(depth, [](RcuSyncWalk& w) { w.Exit(); });
    if (pending_) Branch(depth, [](RcuSyncWalk& w) { w.Pass(); });
  }
  uint64_t walks = 0;

 private:
  template <class Move>
  void Branch(uint32_t depth, Move move) {
    RcuSyncWalk next = *this;
    move(next);
    next.Go(depth - 1);
    walks = next.walks + 1;
  }
  void Enter() {
    const bool idle = machine_.state() == State::kIdle;
    const Entry entry = machine_.Enter();
    EXPECT_EQ(entry == Entry::kWaitGracePeriod, idle);
    if (idle) Begin();
  }
  void Exit() {
    left_since_begin_ = left_since_begin_ || machine_.users() == 1;
    Do(machine_.Exit());
  }
  void Pass() {
    pending_ = false;
    const bool first = machine_.state() == State::kEnter;
    const bool stale = left_since_begin_ && !first;
    Do(machine_.GpPassed());
    if (machine_.state() == State::kIdle) {
      EXPECT_FALSE(stale);
    }
    EXPECT_NE(machine_.state(), State::kEnter);
  }
  void Begin() {
    EXPECT_FALSE(pending_) << "one callback at a time";
    pending_ = true;
    left_since_begin_ = false;
  }
  void Do(Action action) {
    if (action == Action::kCall) Begin();
  }

  RcuSyncMachine machine_;
  bool pending_ = false;           // a grace period is under way for it
  bool left_since_begin_ = false;  // the last user has left since that began
};

TEST(RcuSync, AllWalksOfTwelveMoves) {
  RcuSyncWalk walk;
  walk.Go(12);
  EXPECT_GT(walk.walks, 10'000u);
}

// --- Walks over steps.

class Recorder {
 public:
  void Enter(abi::CpuhpState state) { Add("in", static_cast<uint32_t>(state)); }
  Error Startup(const CpuhpStep& step) { return Run("up", step); }
  Error Teardown(const CpuhpStep& step) { return Run("down", step); }
  void Failed(const CpuhpStep& step, Error) {
    Add("failed", static_cast<uint32_t>(step.state));
    undoing_ = true;
  }
  void UndoFailed(const CpuhpStep&, Error) { Add("stuck", 0); }

  uint32_t fail = 0;
  uint32_t stuck = 0;  // cannot be undone
  std::vector<std::string> log;
  // What of the steps stands: each startup adds one, each teardown takes one away.
  std::vector<int> standing = std::vector<int>(300);

 private:
  void Add(const std::string& what, uint32_t state) {
    log.push_back(what + " " + std::to_string(state));
  }
  Error Run(const std::string& what, const CpuhpStep& step) {
    const auto state = static_cast<uint32_t>(step.state);
    if (!undoing_ && state == fail) return Error::kStepFailed;
    if (undoing_ && state == stuck) return Error::kTimeoutDead;
    Add(what, state);
    standing[state] += what == "up" ? 1 : -1;
    return Error::kNone;
  }
  bool undoing_ = false;
};

Error Nothing(PerCpu&, CpuNumber) { return Error::kNone; }

std::vector<CpuhpStep> Steps(const std::vector<uint32_t>& states) {
  std::vector<CpuhpStep> steps;
  for (const uint32_t state : states) {
    steps.push_back(
        {static_cast<abi::CpuhpState>(state), Section::kOnline, true, Nothing, Nothing});
  }
  return steps;
}

constexpr auto State_ = [](uint32_t number) { return static_cast<abi::CpuhpState>(number); };

TEST(Walk, UpAndDownEnterEachStateOnce) {
  const std::vector<CpuhpStep> steps = Steps({143, 147, 188, 234});
  Recorder up;
  EXPECT_EQ(WalkUp(StepSpan(steps), State_(142), State_(235), up), Error::kNone);
  EXPECT_EQ(up.log, (std::vector<std::string>{"in 143", "up 143", "in 147", "up 147", "in 188",
                                              "up 188", "in 234", "up 234"}));
  Recorder down;
  EXPECT_EQ(WalkDown(StepSpan(steps), State_(235), State_(142), down), Error::kNone);
  EXPECT_EQ(down.log, (std::vector<std::string>{"down 234", "in 188", "down 188", "in 147",
                                                "down 147", "in 143", "down 143", "in 142"}));
}

TEST(Walk, ATargetBetweenTwoStepsIsWhereItEnds) {
  const std::vector<CpuhpStep> steps = Steps({143, 147, 188, 234});
  Recorder down;
  EXPECT_EQ(WalkDown(StepSpan(steps), State_(235), State_(150), down), Error::kNone);
  EXPECT_EQ(down.log.back(), "in 150");
  EXPECT_EQ(down.standing[147], 0);
  Recorder up;
  EXPECT_EQ(WalkUp(StepSpan(steps), State_(150), State_(200), up), Error::kNone);
  EXPECT_EQ(up.log, (std::vector<std::string>{"in 188", "up 188"}));
}

TEST(Walk, AFailureUndoesWhatThisWalkDidInReverseEachOnce) {
  const std::vector<uint32_t> states = {143, 147, 188, 234};
  const std::vector<CpuhpStep> steps = Steps(states);
  for (const uint32_t fail : states) {
    for (const uint32_t from : {142u, 143u, 147u, 188u}) {
      if (fail <= from) continue;
      Recorder up;
      up.fail = fail;
      EXPECT_EQ(WalkUp(StepSpan(steps), State_(from), State_(235), up), Error::kStepFailed);
      EXPECT_EQ(up.log.back(), "in " + std::to_string(from)) << fail;
      for (const int count : up.standing) EXPECT_EQ(count, 0);
      std::vector<uint32_t> undone;
      for (const std::string& line : up.log) {
        if (line.rfind("down ", 0) == 0)
          undone.push_back(static_cast<uint32_t>(std::stoul(line.substr(5))));
      }
      std::vector<uint32_t> reached;
      for (const uint32_t state : states) {
        if (state > from && state < fail) reached.insert(reached.begin(), state);
      }
      EXPECT_EQ(undone, reached);
    }
  }
}

// A CPU that does not answer: nothing below it may be touched, and its state says where it is.
TEST(Walk, ARollbackThatCannotGoOnEndsThere) {
  const std::vector<CpuhpStep> steps = Steps({143, 147, 188, 234});
  Recorder up;
  up.fail = 234;
  up.stuck = 147;
  EXPECT_EQ(WalkUp(StepSpan(steps), State_(142), State_(235), up), Error::kStepFailed);
  const std::vector<std::string> last_up(up.log.end() - 5, up.log.end());
  EXPECT_EQ(last_up,
            (std::vector<std::string>{"failed 234", "in 188", "down 188", "in 147", "stuck 0"}));
  Recorder down;
  down.fail = 143;
  down.stuck = 188;
  EXPECT_EQ(WalkDown(StepSpan(steps), State_(235), State_(142), down), Error::kStepFailed);
  const std::vector<std::string> last_down(down.log.end() - 6, down.log.end());
  EXPECT_EQ(last_down, (std::vector<std::string>{"failed 143", "in 147", "up 147", "in 188",
                                                 "stuck 0", "in 147"}));
}

TEST(Walk, AFailureOnTheWayDownBringsBackWhatWasTakenDown) {
  const std::vector<uint32_t> states = {143, 147, 188, 234};
  const std::vector<CpuhpStep> steps = Steps(states);
  for (const uint32_t fail : states) {
    Recorder down;
    down.fail = fail;
    EXPECT_EQ(WalkDown(StepSpan(steps), State_(235), State_(142), down), Error::kStepFailed);
    for (const int count : down.standing) EXPECT_EQ(count, 0);
    const auto ups = std::count_if(down.log.begin(), down.log.end(), [](const std::string& line) {
      return line.rfind("up ", 0) == 0;
    });
    EXPECT_EQ(ups, std::count_if(states.begin(), states.end(),
                                 [fail](uint32_t state) { return state > fail; }));
    if (fail != 234) {
      EXPECT_EQ(down.log.back(), "in 235");
    }
  }
}

}  // namespace
}  // namespace sipi
