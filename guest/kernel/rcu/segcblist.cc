#include "guest/kernel/rcu/segcblist.h"

namespace sipi::rcu {

void CallbackList::Push(Head& callback) {
  callback.next = nullptr;
  *tail = &callback;
  tail = &callback.next;
  ++count;
}

Head* CallbackList::Pop() {
  Head* first = head;
  if (first == nullptr) return nullptr;
  head = first->next;
  if (head == nullptr) tail = &head;
  --count;
  return first;
}

void CallbackList::Append(CallbackList& other) {
  if (other.empty()) return;
  *tail = other.head;
  tail = other.tail;
  count += other.count;
  other.head = nullptr;
  other.tail = &other.head;
  other.count = 0;
}

SegCbList::SegCbList() {
  for (Head**& tail : tails_) tail = &head_;
}

bool SegCbList::SegmentEmpty(Segment segment) const {
  return tails_[segment] == (segment == kDone ? &head_ : tails_[segment - 1]);
}

void SegCbList::Enqueue(Head& callback) {
  callback.next = nullptr;
  *tails_[kNext] = &callback;
  tails_[kNext] = &callback.next;
  ++seglen_[kNext];
  ++length_;
}

bool SegCbList::Entrain(Head& callback) {
  if (length_ == 0) return false;
  uint32_t segment = kNext;
  while (segment != kDone && SegmentEmpty(static_cast<Segment>(segment))) --segment;
  callback.next = nullptr;
  ++seglen_[segment];
  ++length_;
  *tails_[segment] = &callback;
  for (; segment < kSegments; ++segment) tails_[segment] = &callback.next;
  return true;
}

void SegCbList::Advance(const GpPair& now) {
  if (!HasPending()) return;
  uint32_t from = kWait;
  for (; from < kNext; ++from) {
    const bool reached =
        SeqDone(now.normal, gp_[from].normal) || SeqDone(now.expedited, gp_[from].expedited);
    if (!reached) break;
    tails_[kDone] = tails_[from];
    seglen_[kDone] += seglen_[from];
    seglen_[from] = 0;
  }
  if (from == kWait) return;
  // Segments that have been emptied end where DONE does; those behind move up to WAIT.
  for (uint32_t i = kWait; i < from; ++i) tails_[i] = tails_[kDone];
  for (uint32_t to = kWait; from < kNext; ++from, ++to) {
    if (tails_[to] == tails_[kNext]) break;  // nothing behind
    tails_[to] = tails_[from];
    gp_[to] = gp_[from];
    seglen_[to] = seglen_[from];
    seglen_[from] = 0;
  }
}

bool SegCbList::Accelerate(const GpPair& until) {
  if (!HasPending()) return false;
  // The last segment that waits for an earlier grace period than `until` stays as it is.
  uint32_t keep = kNextReady;
  for (; keep > kDone; --keep) {
    const bool empty = SegmentEmpty(static_cast<Segment>(keep));
    if (!empty && SeqLt(gp_[keep].normal, until.normal)) break;
  }
  const uint32_t first = keep + 1;
  if (first >= kNext || tails_[keep] == tails_[kNext]) return false;
  for (uint32_t i = first + 1; i < kSegments; ++i) {
    seglen_[first] += seglen_[i];
    seglen_[i] = 0;
  }
  for (uint32_t i = first; i < kNext; ++i) {
    tails_[i] = tails_[kNext];
    gp_[i] = until;
  }
  return true;
}

void SegCbList::ExtractDone(CallbackList& to) {
  if (!HasReady()) return;
  to.count += seglen_[kDone];
  seglen_[kDone] = 0;
  Head** const end = tails_[kDone];
  Head* const rest = *end;
  *to.tail = head_;
  to.tail = end;
  *end = nullptr;
  head_ = rest;
  for (Head**& tail : tails_) {
    if (tail == end) tail = &head_;
  }
}

void SegCbList::ExtractPending(CallbackList& to) {
  if (!HasPending()) return;
  for (uint32_t i = kWait; i < kSegments; ++i) {
    to.count += seglen_[i];
    seglen_[i] = 0;
  }
  *to.tail = *tails_[kDone];
  to.tail = tails_[kNext];
  *tails_[kDone] = nullptr;
  for (uint32_t i = kWait; i < kSegments; ++i) tails_[i] = tails_[kDone];
}

void SegCbList::InsertDone(CallbackList& from) {
  if (from.empty()) return;
  seglen_[kDone] += from.count;
  *from.tail = head_;
  head_ = from.head;
  for (Head**& tail : tails_) {
    if (tail != &head_) break;
    tail = from.tail;
  }
  from.head = nullptr;
  from.tail = &from.head;
  from.count = 0;
}

void SegCbList::InsertPending(CallbackList& from) {
  if (from.empty()) return;
  seglen_[kNext] += from.count;
  *tails_[kNext] = from.head;
  tails_[kNext] = from.tail;
  from.head = nullptr;
  from.tail = &from.head;
  from.count = 0;
}

void SegCbList::Merge(SegCbList& other) {
  CallbackList ready;
  CallbackList pending;
  other.ExtractDone(ready);
  other.ExtractPending(pending);
  length_ += other.length_;
  other.length_ = 0;
  InsertDone(ready);
  InsertPending(pending);
}

bool SegCbList::Consistent() const {
  Head* const* link = &head_;
  uint64_t counted = 0;
  for (uint32_t i = 0; i < kSegments; ++i) {
    uint64_t segment = 0;
    while (link != tails_[i]) {
      if (*link == nullptr) return false;  // the tail is not on the list, or lies before
      link = &(*link)->next;
      ++segment;
    }
    if (segment != seglen_[i]) return false;
    counted += segment;
  }
  const bool gap = SegmentEmpty(kWait) && !SegmentEmpty(kNextReady);
  return *link == nullptr && counted <= length_ && !gap;
}

}  // namespace sipi::rcu
