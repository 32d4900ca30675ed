// Where readers that lose their CPU go on their leaf's list: random lives of a leaf against a model
// that knows of each reader what it holds up.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "guest/kernel/rcu/blocked.h"

namespace sipi::rcu {
namespace {

struct Reader {
  bool gp = false;   // must hold the normal grace period up
  bool exp = false;  // likewise the expedited one
};

// A leaf's list, with pointers as indices; size(): none.
class Leaf {
 public:
  size_t size() const { return list_.size(); }

  void Block(bool blocks_gp, bool blocks_exp) {
    const size_t end = list_.size();
    size_t at = 0;
    switch (PlaceOfBlocked(gp_ != end, exp_ != end, blocks_gp, blocks_exp)) {
      case BlockedPlace::kFirst:
        at = 0;
        break;
      case BlockedPlace::kLast:
        at = end;
        break;
      case BlockedPlace::kAfterExpTasks:
        ASSERT_NE(exp_, end);
        at = exp_ + 1;
        break;
      case BlockedPlace::kAfterGpTasks:
        ASSERT_NE(gp_, end);
        at = gp_ + 1;
        break;
    }
    const bool had_gp = gp_ != end;
    const bool had_exp = exp_ != end;
    list_.insert(list_.begin() + static_cast<std::ptrdiff_t>(at), Reader{blocks_gp, blocks_exp});
    gp_ = had_gp ? gp_ + (at <= gp_ ? 1 : 0) : blocks_gp ? at : list_.size();
    exp_ = had_exp ? exp_ + (at <= exp_ ? 1 : 0) : blocks_exp ? at : list_.size();
    // As few as can be: one that nobody waits for is not waited for, whatever the pointers.
    if (!blocks_gp && !blocks_exp) {
      EXPECT_TRUE(at < gp_ && at < exp_);
    }
    // The first of its kind, where the other kind leaves the choice, holds only itself up.
    if (blocks_gp && !blocks_exp && !had_gp && !had_exp) {
      EXPECT_EQ(gp_ + 1, list_.size());
    }
    if (blocks_exp && !had_exp && !had_gp) {
      EXPECT_EQ(exp_ + 1, list_.size());
    }
    // One that only the normal one waits for does not join the expedited one's while that could be
    // helped: never before its own pointer moves.
    if (blocks_gp && !blocks_exp && !had_gp && had_exp) {
      EXPECT_LT(at, exp_);
    }
  }

  void StartGp() {
    gp_ = 0;
    for (Reader& reader : list_) reader.gp = true;
  }
  void StartExp() {
    exp_ = 0;
    for (Reader& reader : list_) reader.exp = true;
  }
  void Unblock(size_t i) {
    list_.erase(list_.begin() + static_cast<std::ptrdiff_t>(i));
    if (gp_ > i) --gp_;
    if (exp_ > i) --exp_;
  }
  bool GpHeldUp() const { return gp_ < list_.size(); }
  bool ExpHeldUp() const { return exp_ < list_.size(); }

  // Nobody who must hold a grace period up stands before its pointer.
  void Check() const {
    for (size_t i = 0; i < list_.size(); ++i) {
      if (list_[i].gp) {
        EXPECT_GE(i, gp_);
      }
      if (list_[i].exp) {
        EXPECT_GE(i, exp_);
      }
    }
  }
  void EndGp() {
    for (Reader& reader : list_) reader.gp = false;
  }
  void EndExp() {
    for (Reader& reader : list_) reader.exp = false;
  }

 private:
  std::vector<Reader> list_;
  size_t gp_ = 0;
  size_t exp_ = 0;
};

TEST(BlockedPlace, NoReaderIsForgottenAndFewAreHeldUpInVain) {
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    std::mt19937 random(seed);
    Leaf leaf;
    bool gp_runs = false;
    bool exp_runs = false;
    for (int step = 0; step < 300; ++step) {
      switch (random() % 6) {
        case 0:
        case 1:
        case 2:
          leaf.Block(gp_runs && random() % 2 == 0, exp_runs && random() % 2 == 0);
          break;
        case 3:
          if (leaf.size() != 0) leaf.Unblock(random() % leaf.size());
          break;
        case 4:
          if (!gp_runs) {
            leaf.StartGp();
            gp_runs = true;
          } else if (!leaf.GpHeldUp()) {
            leaf.EndGp();
            gp_runs = false;
          }
          break;
        default:
          if (!exp_runs) {
            leaf.StartExp();
            exp_runs = true;
          } else if (!leaf.ExpHeldUp()) {
            leaf.EndExp();
            exp_runs = false;
          }
      }
      leaf.Check();
      if (testing::Test::HasFailure()) FAIL() << "seed " << seed << ", step " << step;
    }
  }
}

}  // namespace
}  // namespace sipi::rcu
