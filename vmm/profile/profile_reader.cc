#include "vmm/profile/profile_reader.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "vmm/base/status_macros.h"
#include "vmm/cpu/topology.h"

namespace sipi {
namespace {

using nlohmann::json;

constexpr int64_t kMaxMicroseconds = 10'000'000;  // no machine takes 10 s for one step
constexpr int64_t kMaxTickHz = 10'000;
constexpr int64_t kMaxCpus = 65'536;
constexpr int64_t kMaxTextBytes = 1'000;

struct LatencyKey {
  const char* key;
  Latency Profile::*member;
};
constexpr std::array<LatencyKey, 8> kLatencies = {{
    {"init", &Profile::init},
    {"startup", &Profile::startup},
    {"microcode", &Profile::microcode},
    {"cache_setup", &Profile::cache_setup},
    {"identify", &Profile::identify},
    {"online_steps", &Profile::online_steps},
    {"sched_domains", &Profile::sched_domains},
    {"ipi", &Profile::ipi},
}};
constexpr std::array<const char*, 12> kOtherKeys = {
    "schema",   "name", "description",   "calibration_us", "init_delay_us", "tick_hz",
    "topology", "cpus", "hotplug_steps", "preempt",        "rcu_flavour",   "kernel_busy"};

// One key of the file that is being read.
struct Field {
  const std::string& origin;
  std::string key;

  absl::Status Error(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(origin, ": \"", key, "\" ", what));
  }
};

std::string AllKeys() {
  std::vector<std::string> keys(kOtherKeys.begin(), kOtherKeys.end());
  for (const LatencyKey& latency : kLatencies) keys.emplace_back(latency.key);
  return absl::StrJoin(keys, ", ");
}

// A time in microseconds, fractions allowed, to whole nanoseconds.
absl::StatusOr<int64_t> ReadMicroseconds(const json& value, const Field& field) {
  if (!value.is_number()) return field.Error("must be a number of microseconds");
  const auto us = value.get<double>();
  if (us < 0) return field.Error("is negative; give 0 for a latency that is not to be imposed");
  if (us > static_cast<double>(kMaxMicroseconds)) {
    return field.Error(absl::StrCat("is above ", kMaxMicroseconds, " us; give less"));
  }
  return std::llround(us * 1e3);
}

absl::StatusOr<int64_t> ReadWhole(const json& value, const Field& field, int64_t min, int64_t max) {
  const std::string range = absl::StrCat("must be a whole number from ", min, " to ", max);
  if (!value.is_number_integer()) return field.Error(range);
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(max)) {
    return field.Error(range);
  }
  const auto whole = value.get<int64_t>();
  if (whole < min || whole > max) return field.Error(range);
  return whole;
}

absl::StatusOr<std::string> ReadText(const json& value, const Field& field) {
  if (!value.is_string()) return field.Error("must be a string");
  std::string text = value.get<std::string>();
  if (text.size() > kMaxTextBytes) {
    return field.Error(absl::StrCat("is longer than ", kMaxTextBytes, " bytes"));
  }
  return text;
}

// {"us": 4700, "jitter_us": 235}, or the number of microseconds alone.
absl::StatusOr<Latency> ReadLatency(const json& value, const Field& field) {
  Latency latency;
  if (value.is_number()) {
    ASSIGN_OR_RETURN(latency.ns, ReadMicroseconds(value, field));
    return latency;
  }
  if (!value.is_object()) {
    return field.Error("must be microseconds or {\"us\": ..., \"jitter_us\": ...}");
  }
  if (!value.contains("us")) return field.Error("has no \"us\"; give its median in microseconds");
  for (const auto& [key, part] : value.items()) {
    const Field inner{field.origin, absl::StrCat(field.key, ".", key)};
    if (key != "us" && key != "jitter_us") {
      return inner.Error("is unknown; a latency has us and jitter_us");
    }
    ASSIGN_OR_RETURN(const int64_t ns, ReadMicroseconds(part, inner));
    (key == "us" ? latency.ns : latency.jitter_ns) = ns;
  }
  if (latency.jitter_ns > latency.ns) {
    return field.Error("has more jitter than its median, so it could become negative; give less");
  }
  return latency;
}

template <class T>
struct Word {
  const char* text;
  T value;
};

// One of the words that name a knob's values.
template <class T, size_t kCount>
absl::Status ReadWord(const json& value, const Field& field, const Word<T> (&words)[kCount],
                      T& read) {
  ASSIGN_OR_RETURN(const std::string text, ReadText(value, field));
  std::vector<std::string> known;
  for (const Word<T>& word : words) {
    if (text == word.text) {
      read = word.value;
      return absl::OkStatus();
    }
    known.push_back(absl::StrCat("\"", word.text, "\""));
  }
  return field.Error(absl::StrCat("must be ", absl::StrJoin(known, " or ")));
}

absl::Status ReadSchema(const json& value, const Field& field) {
  if (value == "sipi.profile/1") return absl::OkStatus();
  return field.Error("must be \"sipi.profile/1\"");
}

// What the kernel of that machine was built as.
absl::Status ReadKernel(const json& value, const Field& field, Profile& profile) {
  using abi::HotplugSteps, abi::Preemption, abi::RcuFlavour;
  static constexpr Word<HotplugSteps> kSteps[] = {{"x86", HotplugSteps::kX86},
                                                  {"pseries", HotplugSteps::kPseries}};
  static constexpr Word<Preemption> kPreemption[] = {{"none", Preemption::kNone},
                                                     {"voluntary", Preemption::kVoluntary},
                                                     {"full", Preemption::kFull},
                                                     {"lazy", Preemption::kLazy}};
  static constexpr Word<RcuFlavour> kFlavours[] = {
      {"preemptible", RcuFlavour::kPreemptible}, {"non-preemptible", RcuFlavour::kNonPreemptible}};
  if (field.key == "hotplug_steps") return ReadWord(value, field, kSteps, profile.hotplug_steps);
  if (field.key == "preempt") return ReadWord(value, field, kPreemption, profile.preemption);
  if (field.key == "rcu_flavour") return ReadWord(value, field, kFlavours, profile.rcu_flavour);
  return field.Error(absl::StrCat("is unknown; the keys are ", AllKeys()));
}

absl::Status ReadOther(const json& value, const Field& field, Profile& profile) {
  const std::string& key = field.key;
  if (key == "schema") return ReadSchema(value, field);
  if (key == "name") {
    ASSIGN_OR_RETURN(profile.name, ReadText(value, field));
  } else if (key == "description") {
    ASSIGN_OR_RETURN(profile.description, ReadText(value, field));
  } else if (key == "topology") {
    ASSIGN_OR_RETURN(profile.topology, ReadText(value, field));
  } else if (key == "calibration_us") {
    ASSIGN_OR_RETURN(profile.calibration_ns, ReadMicroseconds(value, field));
    if (profile.calibration_ns > int64_t{kMaxCalibrationUs} * 1000) {
      return field.Error(absl::StrCat("is above ", kMaxCalibrationUs,
                                      " us; give less: the clock that the window is measured by "
                                      "has 24 bits, and begins anew after 4.69 s"));
    }
  } else if (key == "init_delay_us") {
    ASSIGN_OR_RETURN(profile.init_delay_us, ReadWhole(value, field, 0, kMaxMicroseconds));
  } else if (key == "tick_hz") {
    ASSIGN_OR_RETURN(const int64_t hz, ReadWhole(value, field, 1, kMaxTickHz));
    profile.tick_hz = static_cast<uint32_t>(hz);
  } else if (key == "cpus") {
    ASSIGN_OR_RETURN(const int64_t cpus, ReadWhole(value, field, 0, kMaxCpus));
    profile.cpus = static_cast<uint32_t>(cpus);
  } else if (key == "kernel_busy") {
    ASSIGN_OR_RETURN(const int64_t busy, ReadWhole(value, field, 0, kMaxCpus));
    profile.kernel_busy = static_cast<uint32_t>(busy);
  } else {
    return ReadKernel(value, field, profile);
  }
  return absl::OkStatus();
}

absl::Status ReadKey(const json& value, const Field& field, Profile& profile) {
  for (const LatencyKey& latency : kLatencies) {
    if (field.key != latency.key) continue;
    ASSIGN_OR_RETURN(profile.*latency.member, ReadLatency(value, field));
    return absl::OkStatus();
  }
  return ReadOther(value, field, profile);
}

absl::Status CheckTopology(const Profile& profile, const std::string& origin) {
  if (profile.topology.empty()) return absl::OkStatus();
  const absl::Status parsed = ParseTopology(profile.topology, profile.cpus).status();
  if (parsed.ok()) return absl::OkStatus();
  return Field{origin, "topology"}.Error(absl::StrCat("is wrong: ", parsed.message()));
}

}  // namespace

absl::StatusOr<Profile> ReadProfile(const json& tree, const std::string& origin) {
  if (!tree.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(origin, ": must hold one JSON object; docs/profiles.md shows the form"));
  }
  Profile profile;
  profile.name = origin;
  for (const auto& [key, value] : tree.items()) {
    RETURN_IF_ERROR(ReadKey(value, Field{origin, key}, profile));
  }
  RETURN_IF_ERROR(CheckTopology(profile, origin));
  return profile;
}

}  // namespace sipi
