#include "vmm/cli/published_report.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "vmm/report/json_writer.h"
#include "vmm/report/table.h"

namespace sipi {
namespace {

double ErrorPercent(const PublishedResult& row) {
  return static_cast<double>(row.simulated_ns - row.published_ns) * 100 /
         static_cast<double>(row.published_ns);
}

std::string Seconds(int64_t ns) {
  return absl::StrFormat("%.3f", static_cast<double>(ns) / 1'000'000'000);
}

const char* KindOf(const PublishedResult& row) { return row.fitted ? "fitted" : "predicted"; }

std::string BringUpTable(const std::vector<PublishedResult>& rows) {
  TextTable table({{"profile", Align::kLeft},
                   {"strategy", Align::kLeft},
                   {"published ms"},
                   {"simulated ms"},
                   {"error %"},
                   {"", Align::kLeft}});
  for (const PublishedResult& row : rows) {
    table.AddRow({row.profile, row.what, absl::StrCat(row.published_ns / 1'000'000),
                  Milliseconds(row.simulated_ns), absl::StrFormat("%+.1f", ErrorPercent(row)),
                  KindOf(row)});
  }
  return table.Render();
}

std::string SmtTable(const std::vector<PublishedResult>& rows) {
  TextTable table({{"profile", Align::kLeft},
                   {"SMT", Align::kLeft},
                   {"grace periods", Align::kLeft},
                   {"published s"},
                   {"simulated s"},
                   {"error %"},
                   {"", Align::kLeft}});
  for (const PublishedResult& row : rows) {
    table.AddRow({row.profile, row.what, row.grace_periods, Seconds(row.published_ns),
                  Seconds(row.simulated_ns), absl::StrFormat("%+.1f", ErrorPercent(row)),
                  KindOf(row)});
  }
  return table.Render();
}

void WriteRows(JsonWriter& json, const char* key, const char* what,
               const std::vector<PublishedResult>& rows) {
  json.Line();
  json.Key(key);
  json.BeginArray();
  for (const PublishedResult& row : rows) {
    json.Line();
    json.BeginObject();
    json.Field("profile", row.profile);
    json.Field(what, row.what);
    if (!row.grace_periods.empty()) json.Field("grace_periods", row.grace_periods);
    json.Field("published_ns", row.published_ns);
    json.Field("simulated_ns", row.simulated_ns);
    json.Key("error_percent");
    json.Double(ErrorPercent(row));
    json.Field("fitted", row.fitted);
    json.EndObject();
  }
  json.EndArray();
}

}  // namespace

std::string PublishedText(const PublishedResults& results) {
  return absl::StrCat(
      "Published bring-up times, and the simulator with the profile of that machine; medians of ",
      results.runs,
      " seeds.\nFitted: the profile's figures were taken from this row (docs/profiles.md).\n\n",
      BringUpTable(results.bring_up),
      "\nSMT switched, a core's threads being eight; expedited: approach expedite of sipi smt, "
      "normal: none.\n"
      "Of ppc64-1920 no more is known than 40 to 55 minutes and 5 to 6, in whichever direction."
      "\n\n",
      SmtTable(results.smt));
}

std::string PublishedJson(const PublishedResults& results) {
  JsonWriter json;
  json.BeginObject();
  json.Field("schema", "sipi.published/1");
  json.Field("runs", results.runs);
  WriteRows(json, "bring_up", "strategy", results.bring_up);
  WriteRows(json, "smt", "direction", results.smt);
  json.EndObject();
  return json.Take();
}

}  // namespace sipi
