#include "vmm/report/services_json.h"

#include <optional>

#include "vmm/report/host_json.h"
#include "vmm/timeline/outcome.h"
#include "vmm/timeline/scenario_names.h"
#include "vmm/timeline/service_analysis.h"

namespace sipi {
namespace {

const char* BootGracePeriods(const abi::KernelKnobs& knobs) {
  if (knobs.boot_grace_periods == 0) return "none";
  return knobs.boot_expedited != 0 ? "expedited" : "normal";
}

// ~0: left to HZ and the number of CPUs.
std::optional<int64_t> Jiffies(uint32_t value) {
  if (value == ~0u) return std::nullopt;
  return value;
}

void WriteWaits(JsonWriter& json, std::string_view key, const Waits& waits) {
  json.Key(key);
  json.BeginObject();
  for (const abi::GracePeriodKind kind :
       {abi::GracePeriodKind::kNormal, abi::GracePeriodKind::kExpedited,
        abi::GracePeriodKind::kNone}) {
    json.Field(Name(kind), waits.of(kind));
  }
  json.EndObject();
}

}  // namespace

void WriteKernel(JsonWriter& json, const abi::KernelKnobs& knobs) {
  json.Line();
  json.Key("kernel");
  json.BeginObject();
  json.Field("hz", knobs.hz);
  json.Field("preempt", Name(knobs.preemption));
  json.Field("rcu_flavour", Name(knobs.rcu_flavour));
  json.Field("rcu_fanout", uint32_t{knobs.rcu_fanout});
  json.Field("rcu_fanout_leaf", uint32_t{knobs.rcu_fanout_leaf});
  json.Field("rcu_expedited", knobs.rcu_expedited != 0);
  json.Field("rcu_normal", knobs.rcu_normal != 0);
  json.Field("rcu_wake_from_gp", knobs.rcu_normal_wake_from_gp != 0);
  json.Field("rcu_exp", knobs.rcu_exp_parallel != 0 ? "parallel" : "serial");
  json.Field("boot_gp", BootGracePeriods(knobs));
  json.Field("hotplug_steps", Name(knobs.hotplug_steps));
  json.Field("jiffies_till_first_fqs", Jiffies(knobs.jiffies_till_first_fqs));
  json.Field("jiffies_till_next_fqs", Jiffies(knobs.jiffies_till_next_fqs));
  json.Field("rcu_stall_ms", knobs.rcu_stall_ms);
  json.EndObject();
}

void WriteHotplug(JsonWriter& json, const RunRecord& record) {
  const std::vector<HotplugOperation> operations = HotplugOperations(record);
  if (operations.empty()) return;
  json.Line();
  json.Key("hotplug");
  json.BeginArray();
  for (const HotplugOperation& each : operations) {
    json.Line();
    json.BeginObject();
    json.Field("cpu", each.cpu);
    json.Field("direction", each.up ? "on" : "off");
    json.Field("begin_ns", each.asked_ns);
    json.Field("ns", each.ns);
    json.Field("locks_ns", each.lock_ns());
    json.Field("error", each.error);
    WriteWaits(json, "grace_periods", each.waits);
    WriteWaits(json, "locks_grace_periods", each.lock_waits);
    json.EndObject();
  }
  json.EndArray();
}

void WriteScenarioHead(JsonWriter& json, std::string_view schema, const RunRecord& record) {
  json.Field("schema", schema);
  json.Field("machine", record.machine);
  WriteHost(json, record.host);
  json.Field("irqchip", record.irqchip);
  json.Field("apic", record.apic);
  json.Field("profile", record.profile);
  json.Field("seed", record.seed);
  json.Field("cpus_offered", record.cpus_offered);
  json.Field("cpus_online", record.cpus_online);
  json.Field("outcome", Name(record.outcome));
  json.Field("diagnosis", record.diagnosis);
  json.Field("lost_events", record.lost_events);
  json.Key("notes");
  json.BeginArray();
  for (const std::string& note : record.notes) json.String(note);
  json.EndArray();
  if (record.services.has_value()) WriteKernel(json, record.services->kernel);
}

}  // namespace sipi
