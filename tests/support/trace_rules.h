// Checks a text against the rules of the Trace Event Format (the "JSON object format" that Perfetto
// and chrome://tracing read), and against those that our own traces keep beyond it. Used on
// hand-made records and on traces of real runs.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sipi {

struct TraceSpan {
  double ts_us;
  double dur_us;
  std::string name;
  std::string category;
};

// What a valid trace holds, for a test to look at.
struct TraceContents {
  std::vector<std::string> violations;               // one line each; empty: all rules are kept
  std::map<int, std::string> track_names;            // by tid
  std::map<int, std::vector<TraceSpan>> spans;       // by tid, in the file's order
  std::map<int, std::vector<std::string>> instants;  // names, by tid
};

// Rules: the text is JSON with "displayTimeUnit" of ms or ns and an array "traceEvents"; every
// event has name, ph, ts, pid and tid; ph is X, i, M or a B/E that is balanced on its track; X has
// dur >= 0; i has the scope g, p or t; the spans of one track lie apart or within each other; each
// track that has events has a thread_name, and each pid a process_name.
TraceContents CheckTrace(std::string_view text);

}  // namespace sipi
