// The "host" object that the files have in common.
#pragma once

#include "vmm/report/json_writer.h"
#include "vmm/timeline/run_record.h"

namespace sipi {

// Writes key and value.
inline void WriteHost(JsonWriter& json, const HostInfo& host) {
  json.Key("host");
  json.BeginObject();
  json.Field("kvm_module", host.kvm_module);
  json.Field("cpu", host.cpu);
  json.Field("cores", host.cores);
  json.Field("kernel", host.kernel);
  json.EndObject();
}

}  // namespace sipi
