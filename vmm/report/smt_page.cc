#include "vmm/report/smt_page.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "vmm/report/smt_report.h"
#include "vmm/report/table.h"
#include "vmm/timeline/scenario_names.h"

namespace sipi {
namespace {

constexpr double kBarWidth = 560;  // of the longest, in CSS pixels
constexpr int kRowHeight = 22;
constexpr int kLabelWidth = 170;
constexpr int kLanes = 8;  // heights at which grace periods are drawn, in turn
constexpr size_t kMostGracePeriods = 2000;

std::string Escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// Two bars per approach, off and on, with their medians beside them.
std::string Bars(const std::vector<SmtRow>& rows) {
  int64_t longest = 1;
  for (const SmtRow& row : rows) {
    for (const SmtFigures* figures : {&row.off, &row.on}) {
      if (figures->ns.has_value()) longest = std::max(longest, figures->ns->median);
    }
  }
  std::string svg;
  int y = 4;
  for (const SmtRow& row : rows) {
    for (const bool off : {true, false}) {
      const SmtFigures& figures = off ? row.off : row.on;
      const int64_t ns = figures.ns.has_value() ? figures.ns->median : 0;
      const double width = kBarWidth * static_cast<double>(ns) / static_cast<double>(longest);
      absl::StrAppendFormat(&svg, "<text x=\"0\" y=\"%d\">%s %s</text>", y + 14, Name(row.approach),
                            off ? "off" : "on");
      absl::StrAppendFormat(&svg,
                            "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\"/>",
                            off ? "off" : "on", kLabelWidth, y, width, kRowHeight - 6);
      absl::StrAppendFormat(&svg, "<text x=\"%.1f\" y=\"%d\">%s ms</text>\n",
                            kLabelWidth + width + 6, y + 14,
                            figures.ns.has_value() ? Milliseconds(ns) : "-");
      y += kRowHeight;
    }
    y += 6;
  }
  return absl::StrFormat("<svg width=\"%d\" height=\"%d\" role=\"img\">\n%s</svg>\n",
                         kLabelWidth + static_cast<int>(kBarWidth) + 120, y, svg);
}

// The switches on one line of time, with the grace periods that ran meanwhile below.
std::string Life(const RunRecord& record) {
  const std::vector<SmtSwitch> switches = SmtSwitches(record);
  if (switches.empty()) return "";
  const int64_t begin = switches.front().begin_ns;
  const int64_t end = std::max(record.events.back().t_ns, begin + 1);
  const double scale = (kLabelWidth + kBarWidth) / static_cast<double>(end - begin);
  const auto rect = [&](const char* kind, int64_t from, int64_t to, int y, int height,
                        const std::string& title) {
    return absl::StrFormat(
        "<rect class=\"%s\" x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\"><title>%s</title>"
        "</rect>\n",
        kind, static_cast<double>(from - begin) * scale, y,
        std::max(0.5, static_cast<double>(to - from) * scale), height, title);
  };
  std::string svg;
  for (const SmtSwitch& each : switches) {
    const int64_t until = each.begin_ns + each.ns.value_or(end - each.begin_ns);
    absl::StrAppend(&svg, rect(each.off ? "off" : "on", each.begin_ns, until, 4, 20,
                               absl::StrCat(Name(each.approach), each.off ? " off, " : " on, ",
                                            Duration(until - each.begin_ns))));
  }
  size_t drawn = 0;
  for (const GracePeriod& period : GracePeriods(record)) {
    if (period.begin_ns < begin) continue;
    if (drawn == kMostGracePeriods) break;
    const int lane = static_cast<int>(drawn++ % kLanes);
    const int64_t until = period.end_ns.value_or(end);
    absl::StrAppend(
        &svg,
        rect(period.expedited ? "expedited" : "normal", period.begin_ns, until, 30 + lane * 8, 6,
             absl::StrCat(period.expedited ? "expedited" : "normal", " grace period ",
                          period.sequence, ", ", Duration(until - period.begin_ns))));
  }
  const std::string more = drawn < kMostGracePeriods
                               ? ""
                               : absl::StrCat("<p>Only the first ", kMostGracePeriods,
                                              " grace periods are drawn.</p>\n");
  return absl::StrFormat("<svg width=\"%d\" height=\"%d\" role=\"img\">\n%s</svg>\n%s",
                         kLabelWidth + static_cast<int>(kBarWidth), 34 + kLanes * 8, svg, more);
}

constexpr char kStyle[] =
    "body{font:14px sans-serif;margin:2em;max-width:70em}"
    "pre{background:#f4f4f4;padding:1em;overflow:auto}"
    "svg text{font:12px sans-serif}"
    ".off{fill:#c0504d}.on{fill:#4f81bd}.normal{fill:#999}.expedited{fill:#e5a000}";

}  // namespace

std::string SmtPage(const RunRecord& record) {
  const std::vector<SmtRow> rows = SmtRows(SmtSwitches(record));
  return absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>sipi smt, ",
      record.cpus_offered, " CPUs</title><style>", kStyle,
      "</style></head><body>\n<h1>SMT off and on, ", record.cpus_offered,
      record.machine == "sim" ? " simulated" : "", " CPUs</h1>\n<pre>", Escaped(SmtTable(record)),
      "</pre>\n<h2>Time of a switch</h2>\n", Bars(rows),
      "<h2>The run</h2>\n<p>Above the switches (red: off, blue: on), below the grace periods "
      "(grey: normal, yellow: expedited).</p>\n",
      Life(record), "</body></html>\n");
}

}  // namespace sipi
