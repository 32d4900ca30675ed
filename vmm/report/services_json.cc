#include "vmm/report/services_json.h"

#include <optional>

#include "vmm/report/host_json.h"
#include "vmm/timeline/outcome.h"
#include "vmm/timeline/scenario_names.h"

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

void WriteScenarioHead(JsonWriter& json, std::string_view schema, const RunRecord& record) {
  json.Field("schema", schema);
  json.Field("machine", record.machine);
  WriteHost(json, record.host);
  json.Field("irqchip", record.irqchip);
  json.Field("profile", record.profile);
  json.Field("seed", record.seed);
  json.Field("cpus_offered", record.cpus_offered);
  json.Field("cpus_online", record.cpus_online);
  json.Field("outcome", Name(record.outcome));
  json.Field("diagnosis", record.diagnosis);
  json.Field("lost_events", record.lost_events);
  if (record.services.has_value()) WriteKernel(json, record.services->kernel);
}

}  // namespace sipi
