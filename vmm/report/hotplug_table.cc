#include "vmm/report/hotplug_table.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "vmm/report/scenario_head.h"
#include "vmm/report/table.h"
#include "vmm/timeline/service_analysis.h"
#include "vmm/timeline/statistics.h"

namespace sipi {
namespace {

// Of an operation without an end nothing is known where events were lost.
bool Failed(const RunRecord& record, const HotplugOperation& operation) {
  return operation.error != 0 || (!operation.ns.has_value() && record.lost_events == 0);
}

// Operations of one direction.
class Row {
 public:
  Row(const RunRecord& record, const std::vector<HotplugOperation>& operations, bool up) {
    for (const HotplugOperation& each : operations) {
      if (each.up != up) continue;
      ++count_;
      failed_ += Failed(record, each) ? 1u : 0u;
      for (const auto& [sum, part] :
           {std::pair(&waits_, &each.waits), std::pair(&lock_waits_, &each.lock_waits)}) {
        for (size_t i = 0; i < sum->by_kind.size(); ++i) sum->by_kind[i] += part->by_kind[i];
      }
      if (each.error != 0 || !each.ns.has_value()) continue;
      times_.push_back(*each.ns);
      lock_times_.push_back(each.lock_ns());
    }
  }

  uint32_t count() const { return count_; }

  std::vector<std::string> Cells(const char* name) const {
    const auto us = [](const std::optional<Summary>& summary, int64_t Summary::*member) {
      return summary.has_value() ? Microseconds((*summary).*member) : "-";
    };
    const std::optional<Summary> times = Summarize(times_);
    return {name,
            absl::StrCat(count_),
            failed_ == 0 ? "" : absl::StrCat(failed_),
            us(times, &Summary::min),
            us(times, &Summary::median),
            us(times, &Summary::max),
            us(Summarize(lock_times_), &Summary::median),
            Each(waits_, abi::GracePeriodKind::kNormal),
            Each(waits_, abi::GracePeriodKind::kExpedited),
            absl::StrFormat("%.2f", static_cast<double>(Total(lock_waits_)) / count_)};
  }

 private:
  std::string Each(const Waits& waits, abi::GracePeriodKind kind) const {
    return absl::StrFormat("%.2f", static_cast<double>(waits.of(kind)) / count_);
  }
  // Without those that needed none.
  static uint64_t Total(const Waits& waits) {
    return waits.of(abi::GracePeriodKind::kNormal) + waits.of(abi::GracePeriodKind::kExpedited);
  }

  uint32_t count_ = 0;
  uint32_t failed_ = 0;
  std::vector<int64_t> times_;
  std::vector<int64_t> lock_times_;
  Waits waits_;
  Waits lock_waits_;
};

}  // namespace

bool HotplugComplete(const RunRecord& record) {
  const bool asked =
      record.services.has_value() && record.services->scenario == abi::Scenario::kHotplug;
  if (asked && record.lost_events != 0) return false;
  const std::vector<HotplugOperation> operations = HotplugOperations(record);
  return std::none_of(operations.begin(), operations.end(),
                      [&record](const HotplugOperation& each) { return Failed(record, each); });
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
                   {"locks us"},
                   {"normal GPs each"},
                   {"expedited"},
                   {"for locks"}});
  for (const bool up : {false, true}) {
    const Row row(record, operations, up);
    if (row.count() != 0) table.AddRow(row.Cells(up ? "on" : "off"));
  }
  const std::string kernel =
      record.services.has_value() ? absl::StrCat(KernelText(record.services->kernel), "\n") : "";
  return absl::StrCat("\n", kernel, table.Render(),
                      "times from being asked to giving the locks back; locks: median until they "
                      "are held; GPs: grace periods waited for\n",
                      record.lost_events == 0
                          ? ""
                          : "events were lost: operations may be missing, or lack their end\n");
}

}  // namespace sipi
