// The segmented list of callbacks: long random lives against a model that keeps one deque and the
// grace period of each callback by name.
#include "guest/kernel/rcu/segcblist.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <random>
#include <vector>

namespace sipi::rcu {
namespace {

struct Callback {
  Head head;
  int id = 0;
};

int IdOf(const Head* head) { return reinterpret_cast<const Callback*>(head)->id; }

// What is known of a callback in the list.
struct Known {
  int id = 0;
  uint64_t earliest = 0;  // no normal grace period that ends before this will do
  uint64_t earliest_exp = 0;
};

class Life {
 public:
  explicit Life(uint32_t seed, uint64_t first_seq) : random_(seed), normal_(first_seq) {
    expedited_ = first_seq + 4000;
  }

  void Step() {
    switch (random_() % 9) {
      case 0:
      case 1:
      case 2:
        return Enqueue();
      case 3:
        return Accelerate();
      case 4:
        return Advance();
      case 5:
        return Move(normal_);
      case 6:
        return Move(expedited_);
      case 7:
        return Run();
      default:
        return Entrain();
    }
  }

  // Everything runs in the end.
  void Drain() {
    for (int i = 0; i < 4; ++i) {
      Accelerate();
      for (int j = 0; j < 4; ++j) Move(normal_);
      Advance();
      Run(~0ull);
    }
    EXPECT_TRUE(list_.empty());
    EXPECT_EQ(list_.length(), 0u);
    EXPECT_TRUE(known_.empty());
  }

 private:
  Callback& Make() {
    all_.push_back(std::make_unique<Callback>());
    all_.back()->id = static_cast<int>(all_.size());
    return *all_.back();
  }
  Known Queued(const Callback& callback) const {
    return {callback.id, SeqSnap(normal_), SeqSnap(expedited_)};
  }

  void Enqueue() {
    Callback& callback = Make();
    list_.Enqueue(callback.head);
    known_.push_back(Queued(callback));
    Check();
  }

  // Waits for those before it, and for no grace period of its own.
  void Entrain() {
    Callback& callback = Make();
    const bool done = list_.Entrain(callback.head);
    EXPECT_EQ(done, !known_.empty());
    if (done) {
      const Known last = known_.back();
      known_.push_back({callback.id, last.earliest, last.earliest_exp});
    }
    Check();
  }

  void Accelerate() {
    (void)list_.Accelerate({SeqSnap(normal_), SeqSnap(expedited_)});
    Check();
  }

  void Advance() {
    list_.Advance({normal_, expedited_});
    Check();
  }

  void Move(uint64_t& seq) { seq = SeqState(seq) == 0 ? SeqStarted(seq) : SeqEnded(seq); }

  void Run(uint64_t most = 3) {
    CallbackList ready;
    list_.ExtractDone(ready);
    Check();
    uint64_t run = 0;
    while (run < most) {
      Head* head = ready.Pop();
      if (head == nullptr) break;
      ASSERT_FALSE(known_.empty());
      EXPECT_EQ(IdOf(head), known_.front().id) << "out of order";
      EXPECT_TRUE(SeqDone(normal_, known_.front().earliest) ||
                  SeqDone(expedited_, known_.front().earliest_exp))
          << "before its grace period";
      known_.pop_front();
      ++run;
    }
    list_.InsertDone(ready);
    list_.Uncount(run);
    Check();
  }

  void Check() { ASSERT_TRUE(list_.Consistent()); }

  std::mt19937 random_;
  uint64_t normal_;
  uint64_t expedited_;
  SegCbList list_;
  std::deque<Known> known_;
  std::vector<std::unique_ptr<Callback>> all_;
};

TEST(SegCbList, RunsEachOnceInOrderAfterItsGracePeriod) {
  for (uint32_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(seed);
    Life life(seed, seed % 2 == 0 ? kInitialGpSeq : uint64_t{0} - 40);
    for (int i = 0; i < 600; ++i) {
      life.Step();
      if (testing::Test::HasFailure()) return;
    }
    life.Drain();
    if (testing::Test::HasFailure()) return;
  }
}

TEST(SegCbList, MergeKeepsWhatIsReadyReadyAndTheRestWaiting) {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    SegCbList a;
    SegCbList b;
    std::vector<std::unique_ptr<Callback>> all;
    uint64_t seq = 400;
    for (int i = 0; i < 60; ++i) {
      SegCbList& list = random() % 2 == 0 ? a : b;
      switch (random() % 4) {
        case 0:
          list.Advance({seq, 0});
          break;
        case 1:
          (void)list.Accelerate({SeqSnap(seq), 4000});
          break;
        case 2:
          seq = SeqState(seq) == 0 ? SeqStarted(seq) : SeqEnded(seq);
          break;
        default:
          all.push_back(std::make_unique<Callback>());
          list.Enqueue(all.back()->head);
      }
    }
    const uint64_t ready = a.SegmentLength(SegCbList::kDone) + b.SegmentLength(SegCbList::kDone);
    const uint64_t length = a.length() + b.length();
    a.Merge(b);
    ASSERT_TRUE(a.Consistent() && b.Consistent()) << seed;
    EXPECT_TRUE(b.empty());
    EXPECT_EQ(b.length(), 0u);
    EXPECT_EQ(a.length(), length);
    EXPECT_EQ(length, all.size());
    EXPECT_EQ(a.SegmentLength(SegCbList::kDone), ready);
  }
}

TEST(SegCbList, EntrainFindsCallbacksThatRunAtThisMoment) {
  SegCbList list;
  Callback first;
  Callback barrier;
  EXPECT_FALSE(list.Entrain(barrier.head));
  list.Enqueue(first.head);
  (void)list.Accelerate({8, 4000});
  list.Advance({8, 0});
  CallbackList running;
  list.ExtractDone(running);
  EXPECT_TRUE(list.empty());
  EXPECT_TRUE(list.Entrain(barrier.head));  // `first` has been taken off, but has not run
  EXPECT_TRUE(list.HasReady());             // and no further grace period is needed
}

TEST(SegCbList, NoSecondGracePeriodForLateComersOfTheSame) {
  SegCbList list;
  Callback a;
  Callback b;
  Callback c;
  list.Enqueue(a.head);
  EXPECT_TRUE(list.Accelerate({8, 4000}));
  list.Enqueue(b.head);
  EXPECT_TRUE(list.Accelerate({8, 4000}));  // the same one: joins WAIT
  EXPECT_EQ(list.SegmentLength(SegCbList::kWait), 2u);
  list.Enqueue(c.head);
  EXPECT_TRUE(list.Accelerate({12, 4000}));
  EXPECT_EQ(list.SegmentLength(SegCbList::kWait), 2u);
  EXPECT_EQ(list.SegmentLength(SegCbList::kNextReady), 1u);
  list.Advance({8, 0});
  EXPECT_EQ(list.SegmentLength(SegCbList::kDone), 2u);
  EXPECT_EQ(list.SegmentLength(SegCbList::kWait), 1u);  // moved up
}

}  // namespace
}  // namespace sipi::rcu
