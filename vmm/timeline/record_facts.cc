// Small facts that several reports tell of a record.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "guest/abi/percpu.h"
#include "vmm/timeline/event_info.h"
#include "vmm/timeline/run_record.h"

namespace sipi {

bool WasVetoed(const RunRecord& record) {
  return std::any_of(record.events.begin(), record.events.end(),
                     [](const Event& event) { return event.name == abi::TraceEvent::kVeto; });
}

std::string FailureText(const RunRecord& record, const CpuFinal& cpu, WhichFailure which) {
  const bool first = which == WhichFailure::kFirst;
  const uint32_t error = first ? cpu.first_error : cpu.error;
  if (error != static_cast<uint32_t>(abi::GuestError::kStepFailed)) return GuestErrorName(error);
  // Of one try: the step that failed first. Those that fail after it do so because of it.
  uint32_t step = 0;  // 0: none; offline is no step
  for (const Event& event : record.events) {
    if (event.target != cpu.cpu.value) continue;
    const bool tried_again =
        event.name == abi::TraceEvent::kRetry || event.name == abi::TraceEvent::kHotplugBegin;
    if (tried_again && first && step != 0) break;
    if (tried_again) step = 0;
    if (event.name == abi::TraceEvent::kStepFailed && step == 0) step = event.value;
  }
  if (step == 0) return GuestErrorName(error);
  return absl::StrCat("cpuhp step ", abi::Name(static_cast<abi::CpuhpState>(step)), " failed");
}

std::string LostEventsNote(uint64_t lost_events) {
  return std::to_string(lost_events) + " events of the timeline were lost";
}

std::string HostLine(const HostInfo& host) {
  std::string line;
  const auto add = [&line](const std::string& text) {
    if (text.empty()) return;
    if (!line.empty()) line += ", ";
    line += text;
  };
  add(host.cpu);
  if (host.cores != 0) add(std::to_string(host.cores) + (host.cores == 1 ? " core" : " cores"));
  add(host.kvm_module);
  if (!host.kernel.empty()) add("Linux " + host.kernel);
  return line;
}

}  // namespace sipi
