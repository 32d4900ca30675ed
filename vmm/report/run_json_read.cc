#include <cstddef>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "vmm/base/json_reader.h"
#include "vmm/base/json_text.h"
#include "vmm/base/status_macros.h"
#include "vmm/base/text_file.h"
#include "vmm/report/run_json.h"
#include "vmm/timeline/event_info.h"
#include "vmm/timeline/outcome.h"

namespace sipi {
namespace {

using nlohmann::json;

constexpr uint64_t kMaxFileBytes = uint64_t{1} << 30;

absl::Status ReadHost(const json& value, const std::string& where, HostInfo& host) {
  ObjectReader reader(value, where);
  reader.Read("kvm_module", host.kvm_module);
  reader.Read("cpu", host.cpu);
  reader.Read("cores", host.cores);
  reader.Read("kernel", host.kernel);
  return reader.status();
}

std::optional<abi::SyncState> SyncStateByName(std::string_view name) {
  for (uint32_t i = 0; i <= static_cast<uint32_t>(abi::SyncState::kOnline); ++i) {
    const auto state = static_cast<abi::SyncState>(i);
    if (name == abi::Name(state)) return state;
  }
  return std::nullopt;
}

absl::Status ReadCpu(const json& value, const std::string& where, CpuFinal& cpu) {
  ObjectReader reader(value, where);
  std::string sync_state = abi::Name(cpu.sync_state);
  auto cpuhp_state = static_cast<uint32_t>(cpu.cpuhp_state);
  reader.Read("cpu", cpu.cpu.value);
  reader.Read("apic_id", cpu.apic_id.value);
  reader.ReadOptional("online", cpu.online);
  reader.ReadOptional("sync_state", sync_state);
  reader.ReadOptional("cpuhp_state_number", cpuhp_state);
  reader.ReadOptional("error", cpu.error);
  reader.ReadOptional("wanted", cpu.wanted);
  reader.ReadOptional("retried", cpu.retried);
  reader.ReadOptional("first_error", cpu.first_error);
  reader.ReadOptional("tsc_khz", cpu.tsc_khz);
  reader.ReadOptional("instructions", cpu.instructions);
  reader.ReadOptional("doing", cpu.doing);
  cpu.cpuhp_state = static_cast<abi::CpuhpState>(cpuhp_state);
  if (const auto state = SyncStateByName(sync_state)) {
    cpu.sync_state = *state;
  } else {
    reader.FailAt("sync_state", "is no state of the handshake");
  }
  return reader.status();
}

absl::Status ReadEvent(const json& value, const std::string& where, Event& event) {
  ObjectReader reader(value, where);
  std::string name;
  reader.Read("t_ns", event.t_ns);
  reader.Read("cpu", event.cpu);
  reader.Read("name", name);
  reader.ReadOptional("value", event.value);
  if (!reader.status().ok()) return reader.status();
  const auto target = value.find("target");
  if (target != value.end() && *target == "all") {
    event.target = abi::kAllTargets;
  } else {
    reader.ReadOptional("target", event.target);
  }
  if (const auto known = EventByName(name)) {
    event.name = *known;
  } else {
    reader.FailAt("name", absl::StrCat("is no event that this version knows: ", name));
  }
  return reader.status();
}

absl::Status ReadPayload(const json& value, const std::string& where, RunRecord& record) {
  ObjectReader reader(value, where);
  PayloadResult payload;
  reader.Read("file", payload.file);
  reader.Read("kind", payload.kind);
  reader.Read("exit_status", payload.exit_status);
  record.payload = std::move(payload);
  return reader.status();
}

// Reads each element of an array with `read_one(element, where, out)`.
template <class T, class ReadOne>
absl::Status ReadArray(const json* array, const std::string& where, std::vector<T>& out,
                       ReadOne read_one) {
  out.reserve(array->size());
  for (size_t i = 0; i < array->size(); ++i) {
    out.emplace_back();
    // The name of the place costs more than the reading, so it is made only where it is needed.
    if (read_one((*array)[i], std::string(), out.back()).ok()) continue;
    return read_one((*array)[i], absl::StrCat(where, "[", i, "]"), out.back());
  }
  return absl::OkStatus();
}

absl::Status ReadCounters(const json& value, const std::string& where, RunRecord& record) {
  ObjectReader reader(value, where);
  for (const auto& [name, count] : value.items()) reader.Read(name.c_str(), record.counters[name]);
  return reader.status();
}

absl::Status ReadNotes(const json& array, const std::string& where, RunRecord& record) {
  for (const json& note : array) {
    if (!note.is_string()) return absl::InvalidArgumentError(where + " must hold strings only");
    record.notes.push_back(note.get<std::string>());
  }
  return absl::OkStatus();
}

void ReadHead(ObjectReader& reader, RunRecord& record) {
  std::string schema;
  reader.Read("schema", schema);
  if (schema != "sipi.run/1") reader.FailAt("schema", "must be \"sipi.run/1\"");
  reader.Read("machine", record.machine);
  reader.Read("irqchip", record.irqchip);
  reader.Read("apic", record.apic);
  reader.Read("strategy", record.strategy);
  reader.Read("profile", record.profile);
  reader.ReadOptional("driver", record.driver);
  reader.Read("seed", record.seed);
  reader.Read("cpus_offered", record.cpus_offered);
  record.cpus_wanted = record.cpus_offered;
  reader.ReadOptional("cpus_wanted", record.cpus_wanted);
  reader.Read("cpus_online", record.cpus_online);
  reader.ReadOptional("smt_control", record.smt_control);
  reader.ReadOptional("signal", record.signal);
  reader.ReadOptional("diagnosis", record.diagnosis);
  reader.Read("lost_events", record.lost_events);
  reader.Read("complete", record.complete);
  std::string outcome = Name(record.outcome);
  reader.ReadOptional("outcome", outcome);
  if (const auto known = OutcomeByName(outcome)) {
    record.outcome = *known;
  } else {
    reader.FailAt("outcome", "is unknown");
  }
  // The analysis keeps figures for each CPU that was offered, so a number out of all proportion
  // must not get there.
  constexpr uint32_t kMaxCpus = 1u << 16;
  if (record.cpus_offered > kMaxCpus) reader.FailAt("cpus_offered", "is above 65536");
}

absl::StatusOr<RunRecord> FromTree(const json& tree, const std::string& origin) {
  RunRecord record;
  ObjectReader reader(tree, absl::StrCat(origin, ": the file"));
  ReadHead(reader, record);
  const json* host = reader.Find("host");
  const json* cpus = reader.FindArray("cpus");
  const json* events = reader.FindArray("events");
  const json* counters = reader.Find("counters");
  RETURN_IF_ERROR(reader.status());
  RETURN_IF_ERROR(ReadHost(*host, origin + ": host", record.host));
  RETURN_IF_ERROR(ReadArray(cpus, origin + ": cpus", record.cpus, ReadCpu));
  RETURN_IF_ERROR(ReadArray(events, origin + ": events", record.events, ReadEvent));
  RETURN_IF_ERROR(ReadCounters(*counters, origin + ": counters", record));
  if (const auto payload = tree.find("payload"); payload != tree.end()) {
    RETURN_IF_ERROR(ReadPayload(*payload, origin + ": payload", record));
  }
  if (tree.contains("notes")) {
    const json* notes = reader.FindArray("notes");
    RETURN_IF_ERROR(reader.status());
    RETURN_IF_ERROR(ReadNotes(*notes, origin + ": notes", record));
  }
  return record;
}

}  // namespace

absl::StatusOr<RunRecord> ParseRunJson(std::string_view text, std::string_view origin) {
  const std::string name(origin);
  ASSIGN_OR_RETURN(const json tree,
                   ParseJson(text, name, "give a file that `sipi run --json` wrote"));
  return FromTree(tree, name);
}

absl::StatusOr<RunRecord> ReadRunJson(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path, kMaxFileBytes));
  return ParseRunJson(text, path);
}

}  // namespace sipi
