#include "tests/support/trace_rules.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>

#include "nlohmann/json.hpp"

namespace sipi {
namespace {

using nlohmann::json;
using Track = std::pair<int, int>;  // pid, tid

class Checker {
 public:
  TraceContents Check(std::string_view text) {
    const json tree = json::parse(text, nullptr, false);
    if (tree.is_discarded()) {
      Say("is no valid JSON");
    } else if (!tree.is_object() || !tree.contains("traceEvents") ||
               !tree["traceEvents"].is_array()) {
      Say("has no array traceEvents");
    } else {
      CheckUnit(tree);
      for (size_t i = 0; i < tree["traceEvents"].size(); ++i) {
        where_ = "event " + std::to_string(i);
        CheckEvent(tree["traceEvents"][i]);
      }
      CheckTracks();
    }
    return std::move(out_);
  }

 private:
  struct Interval {
    int64_t begin_ns;
    int64_t end_ns;
    std::string name;
  };

  void Say(const std::string& what) { out_.violations.push_back(where_ + ": " + what); }

  void CheckUnit(const json& tree) {
    const auto unit = tree.value("displayTimeUnit", json());
    if (unit != "ms" && unit != "ns") Say("displayTimeUnit must be ms or ns");
  }

  void CheckEvent(const json& event) {
    if (!event.is_object()) return Say("is no object");
    for (const char* key : {"ts", "pid", "tid"}) {
      if (!event.contains(key) || !event[key].is_number()) {
        return Say(std::string(key) + " must be a number");
      }
    }
    for (const char* key : {"name", "ph"}) {
      if (!event.contains(key) || !event[key].is_string()) {
        return Say(std::string(key) + " must be a string");
      }
    }
    if (event.contains("args") && !event["args"].is_object()) Say("args must be an object");
    const Track track(event["pid"].get<int>(), event["tid"].get<int>());
    const auto phase = event["ph"].get<std::string>();
    if (phase == "M") return CheckMetadata(event, track);
    used_.insert(track);
    if (event["ts"].get<double>() < 0) Say("ts is negative");
    if (phase == "X") return CheckComplete(event, track);
    if (phase == "i") return CheckInstant(event, track);
    if (phase == "B") {
      ++depth_[track];
    } else if (phase == "E") {
      if (--depth_[track] < 0) Say("E without B");
    } else {
      Say("ph " + phase + " is none that is used here");
    }
  }

  void CheckMetadata(const json& event, const Track& track) {
    const json args = event.value("args", json::object());
    const std::string name = event["name"];
    if (name == "process_name") named_processes_.insert(track.first);
    if (name != "thread_name") return;
    if (!args.contains("name")) return Say("thread_name without args.name");
    if (!out_.track_names.emplace(track.second, args["name"].get<std::string>()).second) {
      Say("a second thread_name for tid " + std::to_string(track.second));
    }
  }

  void CheckComplete(const json& event, const Track& track) {
    if (!event.contains("dur") || !event["dur"].is_number()) return Say("X without dur");
    const auto ts = event["ts"].get<double>();
    const auto dur = event["dur"].get<double>();
    if (dur < 0) return Say("dur is negative");
    // In whole nanoseconds, so that the sums of fractions do not make neighbours overlap.
    const int64_t begin_ns = std::llround(ts * 1e3);
    const int64_t end_ns = begin_ns + std::llround(dur * 1e3);
    spans_[track].push_back({begin_ns, end_ns, event["name"]});
    out_.spans[track.second].push_back({ts, dur, event["name"], event.value("cat", "")});
  }

  void CheckInstant(const json& event, const Track& track) {
    const auto scope = event.value("s", json("t"));
    if (scope != "g" && scope != "p" && scope != "t") Say("scope of an instant must be g, p or t");
    out_.instants[track.second].push_back(event["name"]);
  }

  void CheckTracks() {
    for (const auto& [track, depth] : depth_) {
      where_ = "tid " + std::to_string(track.second);
      if (depth > 0) Say("B without E");
    }
    for (const Track& track : used_) {
      where_ = "tid " + std::to_string(track.second);
      if (out_.track_names.count(track.second) == 0) Say("has no thread_name");
      if (named_processes_.count(track.first) == 0) Say("its process has no process_name");
    }
    for (auto& [track, intervals] : spans_) {
      where_ = "tid " + std::to_string(track.second);
      CheckNesting(intervals);
    }
  }

  void CheckNesting(std::vector<Interval>& intervals) {
    std::stable_sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) {
      return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
    });
    std::vector<Interval> open;
    for (const Interval& interval : intervals) {
      while (!open.empty() && open.back().end_ns <= interval.begin_ns) open.pop_back();
      if (!open.empty() && open.back().end_ns < interval.end_ns) {
        Say(interval.name + " crosses the end of " + open.back().name);
      }
      open.push_back(interval);
    }
  }

  TraceContents out_;
  std::string where_ = "trace";
  std::set<Track> used_;
  std::set<int> named_processes_;
  std::map<Track, int> depth_;
  std::map<Track, std::vector<Interval>> spans_;
};

}  // namespace

TraceContents CheckTrace(std::string_view text) { return Checker().Check(text); }

}  // namespace sipi
