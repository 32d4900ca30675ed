#include "vmm/report/span.h"

#include <algorithm>
#include <queue>
#include <utility>

namespace sipi {
namespace {

struct Pending {
  Span span;
  uint64_t order;  // of arrival: keeps the result the same for the same input
};

// True if `a` is to be placed after `b`: outer spans come first.
struct Later {
  bool operator()(const Pending& a, const Pending& b) const {
    if (a.span.begin_ns != b.span.begin_ns) return a.span.begin_ns > b.span.begin_ns;
    if (a.span.end_ns != b.span.end_ns) return a.span.end_ns < b.span.end_ns;
    return a.order > b.order;
  }
};

}  // namespace

std::vector<Span> NestSpans(std::vector<Span> spans) {
  std::priority_queue<Pending, std::vector<Pending>, Later> queue;
  uint64_t order = 0;
  for (Span& span : spans) queue.push({std::move(span), order++});
  std::vector<Span> placed;
  std::vector<int64_t> open_ends;  // of the spans that enclose the next one, the innermost last
  while (!queue.empty()) {
    Span span = queue.top().span;
    queue.pop();
    while (!open_ends.empty() && open_ends.back() <= span.begin_ns) open_ends.pop_back();
    if (!open_ends.empty() && open_ends.back() < span.end_ns) {
      Span rest = span;
      rest.begin_ns = open_ends.back();
      span.end_ns = open_ends.back();
      span.finished = true;
      span.part = std::max(span.part, 1u);
      rest.part = span.part + 1;
      queue.push({std::move(rest), order++});
    }
    open_ends.push_back(span.end_ns);
    placed.push_back(std::move(span));
  }
  return placed;
}

}  // namespace sipi
