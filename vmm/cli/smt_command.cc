// `sipi smt`: one machine that switches SMT off and on by each approach.
#include <optional>

#include "vmm/base/exit_codes.h"
#include "vmm/cli/commands.h"
#include "vmm/cli/process_setup.h"
#include "vmm/cli/scenario_run.h"
#include "vmm/report/smt_page.h"
#include "vmm/report/smt_report.h"

namespace sipi {

int SmtCommand(const CommandLine& line) {
  std::optional<SerialOutput> serial = OpenOutputs(line.flags);
  if (!serial) return static_cast<int>(ExitCode::kUsage);
  StopRequest stop;
  const SignalsStop signals(stop);
  int status = 0;
  const auto record = RunScenario(line, line.checked.config, *serial, stop, status);
  if (!record.has_value()) return status;
  const ScenarioReport report = {.text = [&] { return SmtTable(*record); },
                                 .json = [&] { return SmtJson(*record); },
                                 .page = [&] { return SmtPage(*record); }};
  const bool complete = SmtComplete(*record, SmtRows(SmtSwitches(*record)));
  return ReportScenario(line, *record, report, complete ? 0 : static_cast<int>(ExitCode::kPartial));
}

}  // namespace sipi
