// What is to come, in order of virtual time; events of one time in the order in which they were
// set.
//
// An event is a slot, known by its number, that is set to one time or is not set: setting it again
// moves it, so nothing stale is ever in the heap, which stays as large as there are CPUs and
// messages on their way. O(log n) each.
#pragma once

#include <cstdint>
#include <vector>

namespace sipi::sim {

class EventQueue {
 public:
  static constexpr uint64_t kNever = ~uint64_t{0};

  explicit EventQueue(uint32_t slots) : position_(slots, kAbsent) {}

  void AddSlot() { position_.push_back(kAbsent); }

  void Set(uint32_t slot, uint64_t time_ns) {
    uint32_t at = position_[slot];
    if (at == kAbsent) {
      at = static_cast<uint32_t>(heap_.size());
      heap_.push_back({});
    }
    const Entry entry{time_ns, ++order_, slot};
    // It moves one way or the other; the second call finds it in place.
    at = MoveUp(at, entry);
    MoveDown(at, entry);
  }

  void Cancel(uint32_t slot) {
    const uint32_t at = position_[slot];
    if (at == kAbsent) return;
    position_[slot] = kAbsent;
    const Entry last = heap_.back();
    heap_.pop_back();
    if (at == heap_.size()) return;
    MoveDown(MoveUp(at, last), last);
  }

  bool IsSet(uint32_t slot) const { return position_[slot] != kAbsent; }
  bool empty() const { return heap_.empty(); }
  uint64_t NextTime() const { return heap_.empty() ? kNever : heap_[0].time_ns; }

  // Whose NextTime is. Precondition: not empty.
  uint32_t NextSlot() const { return heap_[0].slot; }

  // Takes the next event. Precondition: not empty.
  uint32_t Pop() {
    const uint32_t slot = heap_[0].slot;
    Cancel(slot);
    return slot;
  }

 private:
  struct Entry {
    uint64_t time_ns = 0;
    uint64_t order = 0;
    uint32_t slot = 0;
    bool Before(const Entry& other) const {
      return time_ns != other.time_ns ? time_ns < other.time_ns : order < other.order;
    }
  };
  static constexpr uint32_t kAbsent = 0xffffffff;
  static constexpr uint32_t kArity = 4;  // shallower than two, and a node's children are neighbours

  void Place(uint32_t at, const Entry& entry) {
    heap_[at] = entry;
    position_[entry.slot] = at;
  }

  // Puts `entry`, which belongs at `at` or above, in its place, and returns that.
  uint32_t MoveUp(uint32_t at, const Entry& entry) {
    while (at != 0) {
      const uint32_t parent = (at - 1) / kArity;
      if (!entry.Before(heap_[parent])) break;
      Place(at, heap_[parent]);
      at = parent;
    }
    Place(at, entry);
    return at;
  }

  void MoveDown(uint32_t at, const Entry& entry) {
    const auto size = static_cast<uint32_t>(heap_.size());
    for (;;) {
      const uint32_t first = at * kArity + 1;
      if (first >= size) break;
      uint32_t least = first;
      for (uint32_t child = first + 1; child < first + kArity && child < size; ++child) {
        if (heap_[child].Before(heap_[least])) least = child;
      }
      if (!heap_[least].Before(entry)) break;
      Place(at, heap_[least]);
      at = least;
    }
    Place(at, entry);
  }

  std::vector<Entry> heap_;
  std::vector<uint32_t> position_;  // in heap_, by slot
  uint64_t order_ = 0;
};

}  // namespace sipi::sim
