// `sipi rcu scale`, `ref`, `callrcu`, `torture`.
#include <optional>
#include <utility>
#include <vector>

#include "vmm/base/exit_codes.h"
#include "vmm/cli/commands.h"
#include "vmm/cli/messages.h"
#include "vmm/cli/process_setup.h"
#include "vmm/cli/scenario_run.h"
#include "vmm/report/rcu_report.h"
#include "vmm/report/scale_report.h"
#include "vmm/report/torture_report.h"

namespace sipi {
namespace {

constexpr int kPartial = static_cast<int>(ExitCode::kPartial);

// One machine, and its report from that one record. `failed_status`: what a run ends with that did
// not do all that was asked.
template <class Text, class Json, class Whole>
int OneRun(const CommandLine& line, Text text, Json json, Whole whole, int failed_status) {
  std::optional<SerialOutput> serial = OpenOutputs(line.flags);
  if (!serial) return static_cast<int>(ExitCode::kUsage);
  StopRequest stop;
  const SignalsStop signals(stop);
  int status = 0;
  const auto record = RunScenario(line, line.checked.config, *serial, stop, status);
  if (!record.has_value()) return status;
  const ScenarioReport report = {.text = [&] { return text(*record); },
                                 .json = [&] { return json(*record); }};
  return ReportScenario(line, *record, report, whole(*record) ? 0 : failed_status);
}

}  // namespace

int RcuScaleCommand(const CommandLine& line) {
  return OneRun(
      line, [&line](const RunRecord& r) { return ScaleText(r, line.services.durations); },
      ScaleJson,
      [](const RunRecord& r) {
        return ScaleComplete(r, ScaleMeasurements(r, r.services->knobs.expedited != 0));
      },
      kPartial);
}

int RcuRefCommand(const CommandLine& line) {
  return OneRun(line, RefText, RefJson, RefComplete, kPartial);
}

int RcuTortureCommand(const CommandLine& line) {
  return OneRun(
      line, TortureText, TortureJson, [](const RunRecord& r) { return TortureFailures(r).empty(); },
      static_cast<int>(ExitCode::kGuestFault));
}

int RcuCallRcuCommand(const CommandLine& line) {
  std::optional<SerialOutput> serial = OpenOutputs(line.flags);
  if (!serial) return static_cast<int>(ExitCode::kUsage);
  StopRequest stop;
  const SignalsStop signals(stop);
  std::vector<RunRecord> records;
  int status = 0;
  for (const abi::WorkerPinning pinning : line.pinnings) {
    if (stop.signal() != 0) break;
    RunConfig config = line.checked.config;
    config.kernel.worker_pinning = pinning;
    auto record = RunScenario(line, config, *serial, stop, status);
    if (!record.has_value()) return status;
    if (status == 0) status = ExitStatus(*record);
    if (status == 0 && !CallRcuComplete(*record)) status = kPartial;
    records.push_back(*std::move(record));
  }
  if (records.empty()) return static_cast<int>(ExitCode::kSignalBase) + stop.signal();
  const ScenarioReport report = {.text = [&] { return CallRcuTable(records); },
                                 .json = [&] { return CallRcuJson(records); }};
  return ReportScenario(line, records.back(), report, status);
}

}  // namespace sipi
