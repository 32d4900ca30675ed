// Small facts that several reports tell of a record.
#include <algorithm>

#include "vmm/timeline/run_record.h"

namespace sipi {

bool WasVetoed(const RunRecord& record) {
  return std::any_of(record.events.begin(), record.events.end(),
                     [](const Event& event) { return event.name == abi::TraceEvent::kVeto; });
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
