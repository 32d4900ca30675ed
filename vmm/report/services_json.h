// What the JSON files of all scenarios beyond bring-up begin with.
#pragma once

#include <string_view>

#include "guest/abi/scenario.h"
#include "vmm/report/json_writer.h"
#include "vmm/timeline/run_record.h"

namespace sipi {

// "kernel": an object with the kernel's knobs, named as their flags.
void WriteKernel(JsonWriter& json, const abi::KernelKnobs& knobs);

// "hotplug": a list of the operations that took CPUs off and on; nothing if there were none.
void WriteHotplug(JsonWriter& json, const RunRecord& record);

// The schema, the machine, how the run ended, and "kernel" if the record has it. The object is open
// before and after.
void WriteScenarioHead(JsonWriter& json, std::string_view schema, const RunRecord& record);

// "key": a list of whole numbers.
template <class Numbers>
void WriteNumbers(JsonWriter& json, std::string_view key, const Numbers& numbers) {
  json.Key(key);
  json.BeginArray();
  for (const auto& number : numbers) json.Int(static_cast<int64_t>(number));
  json.EndArray();
}

}  // namespace sipi
