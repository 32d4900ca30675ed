// A CPU's list of callbacks in four segments, in the order in which they were queued:
//
//   DONE         their grace period has passed, they can run
//   WAIT         wait for the grace period that runs (or the first that is to come)
//   NEXT_READY   wait for the one after
//   NEXT         belong to no grace period yet
//
// Every segment but the last has the sequence numbers of which either must be reached. WAIT is
// empty only if NEXT_READY is too. Plain data without locks: it belongs to whoever its Data belongs
// to (state.h). Free of the platform, so that host tests can use it.
#pragma once

#include <cstdint>

#include "guest/kernel/rcu/gp_seq.h"
#include "guest/kernel/rcu/head.h"

namespace sipi::rcu {

// What a segment waits for: that either counter reaches its value.
struct GpPair {
  uint64_t normal = 0;
  uint64_t expedited = 0;
};

// Callbacks in their order, off any segmented list.
struct CallbackList {
  Head* head = nullptr;
  Head** tail = &head;
  uint64_t count = 0;

  CallbackList() = default;
  CallbackList(const CallbackList&) = delete;
  CallbackList& operator=(const CallbackList&) = delete;
  bool empty() const { return head == nullptr; }
  void Push(Head& callback);
  Head* Pop();                       // null: empty
  void Append(CallbackList& other);  // empties it
};

class SegCbList {
 public:
  enum Segment : uint32_t { kDone = 0, kWait = 1, kNextReady = 2, kNext = 3 };
  static constexpr uint32_t kSegments = 4;

  SegCbList();
  SegCbList(const SegCbList&) = delete;
  SegCbList& operator=(const SegCbList&) = delete;

  bool empty() const { return head_ == nullptr; }
  // Counts those that Extract took and Uncount has not been told of yet.
  uint64_t length() const { return length_; }
  bool HasReady() const { return tails_[kDone] != &head_; }              // some can run
  bool HasPending() const { return *tails_[kDone] != nullptr; }          // some wait
  bool HasUnassigned() const { return *tails_[kNextReady] != nullptr; }  // NEXT is not empty
  const Head* FirstPending() const { return *tails_[kDone]; }            // null: none
  bool SegmentEmpty(Segment segment) const;
  uint64_t SegmentLength(Segment segment) const { return seglen_[segment]; }
  const GpPair& SegmentGp(Segment segment) const { return gp_[segment]; }

  void Enqueue(Head& callback);
  // Puts a callback behind all that are there, in the last segment that is not empty, so that it
  // waits for no grace period that they do not wait for. False: the list is empty, nothing was
  // done.
  bool Entrain(Head& callback);
  // Moves what the counters `now` have reached to DONE, and closes the gap.
  void Advance(const GpPair& now);
  // NEXT, and what waits for a later grace period than `until`, is to wait for that. True: the
  // caller should see to it that this grace period comes.
  bool Accelerate(const GpPair& until);
  // Takes DONE, or all that waits. length() is unchanged: see Uncount.
  void ExtractDone(CallbackList& to);
  void ExtractPending(CallbackList& to);
  // Back to the front of DONE, in order; or to the end of NEXT. length() is unchanged.
  void InsertDone(CallbackList& from);
  void InsertPending(CallbackList& from);
  void Uncount(uint64_t callbacks) { length_ -= callbacks; }
  // Takes over another list's callbacks: those that can run can run, the rest waits anew. The other
  // one is empty afterwards.
  void Merge(SegCbList& other);
  // Panic-free self-check, for tests: every count and tail fits the links.
  bool Consistent() const;

 private:
  Head* head_ = nullptr;
  Head** tails_[kSegments];
  GpPair gp_[kSegments];
  uint64_t seglen_[kSegments] = {};
  uint64_t length_ = 0;
};

}  // namespace sipi::rcu
