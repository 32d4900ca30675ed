// Spans of one track, and how they are made to nest.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sipi {

struct Span {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  std::string name = {};
  const char* category = "";
  std::string args = {};  // members of a JSON object, ready to write: "\"target\":3"; may be empty
  bool finished = true;   // false: its end was not seen
  uint32_t part = 0;      // 1, 2, ... if the span was cut, in order
};

// Cuts spans so that any two of them either lie apart or one within the other, as a trace viewer
// needs on one track. Where two cross, the one that begins later is cut at the end of the other:
// the parts cover exactly what the span covered. The result is sorted so that an outer span stands
// before those within it. Precondition: begin <= end.
std::vector<Span> NestSpans(std::vector<Span> spans);

}  // namespace sipi
