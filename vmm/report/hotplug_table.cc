#include "vmm/report/hotplug_table.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "vmm/report/table.h"
#include "vmm/timeline/service_analysis.h"
#include "vmm/timeline/statistics.h"

namespace sipi {
namespace {

bool Failed(const HotplugOperation& operation) {
  return operation.error != 0 || !operation.ns.has_value();
}

}  // namespace

uint32_t HotplugFailures(const RunRecord& record) {
  const std::vector<HotplugOperation> operations = HotplugOperations(record);
  return static_cast<uint32_t>(std::count_if(operations.begin(), operations.end(), Failed));
}

std::string HotplugTable(const RunRecord& record) {
  const std::vector<HotplugOperation> operations = HotplugOperations(record);
  if (operations.empty()) return "";
  TextTable table({{"hotplug", Align::kLeft},
                   {"times"},
                   {"failed"},
                   {"min us"},
                   {"median us"},
                   {"max us"},
                   {"normal GPs each"},
                   {"expedited"}});
  for (const bool up : {false, true}) {
    std::vector<int64_t> times;
    uint32_t failed = 0;
    uint32_t count = 0;
    Waits waits;
    for (const HotplugOperation& each : operations) {
      if (each.up != up) continue;
      ++count;
      failed += Failed(each) ? 1u : 0u;
      if (!Failed(each)) times.push_back(*each.ns);
      for (size_t i = 0; i < waits.by_kind.size(); ++i) waits.by_kind[i] += each.waits.by_kind[i];
    }
    if (count == 0) continue;
    const std::optional<Summary> summary = Summarize(std::move(times));
    const auto us = [&summary](int64_t Summary::*member) {
      return summary.has_value() ? Microseconds((*summary).*member) : "-";
    };
    const auto each = [count, &waits](abi::GracePeriodKind kind) {
      return absl::StrFormat("%.2f", static_cast<double>(waits.of(kind)) / count);
    };
    table.AddRow({up ? "on" : "off", absl::StrCat(count), failed == 0 ? "" : absl::StrCat(failed),
                  us(&Summary::min), us(&Summary::median), us(&Summary::max),
                  each(abi::GracePeriodKind::kNormal), each(abi::GracePeriodKind::kExpedited)});
  }
  return absl::StrCat("\n", table.Render());
}

}  // namespace sipi
