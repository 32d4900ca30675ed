// The flags that every subcommand that boots a machine takes, as typed: text, not yet checked. One
// table names each flag once: what it fills, how help shows it. run_flags.h turns them into a
// RunConfig.
#pragma once

#include <string>
#include <vector>

// CLI11 is one header of 10,000 lines: only the files that add flags or parse see it.
namespace CLI {
class App;
}

namespace sipi {

// Empty: not given. Values that look like a default are the default.
struct RawFlags {
  std::string machine = "kvm";
  std::string irqchip = "user";
  std::string apic;  // not given: x2apic, for a payload xapic where the IDs allow it
  std::string hide;
  std::string cpus;
  std::string topology;
  std::string apic_ids;
  std::string host_cores;
  std::string steal;
  std::string memory;
  std::string profile = "native";

  std::string strategy = "serial";
  std::string driver = "guest";
  std::string order = "id";
  std::string seed = "1";
  std::string smt = "on";
  bool retry = false;

  std::string init_delay_us;
  std::string sipi_count;
  std::string sipi_delay_us;
  bool init_deassert = false;
  std::string trampoline_lock = "on";
  std::string ap_wait = "halt";
  std::string ap_id = "apic";
  std::string cache_setup = "each";
  std::string topology_update = "locked";
  std::string tsc_check = "off";
  std::string reuse_scope = "machine";
  std::string veto = "none";
  std::string handshake_timeout_ms;
  std::string calibration_us;
  std::string clock = "pm-timer";

  std::string fault;
  std::string firmware_lies;
  std::string scenario = "smpboot";
  std::string scenario_value = "0";

  std::string payload;
  std::string append;
  std::vector<std::string> environment;
  std::string icr = "sdm";

  std::string time_limit_s;
  std::string serial;
  std::string json;
  std::string trace;
  std::string html;
  bool quiet = false;
  bool count_instructions = false;
  std::string kvm_device = "/dev/kvm";
};

// Which command the flags stand at: help shows those that it takes.
enum class MachineUse {
  kRun,
  kCompare,   // several strategies, which are not traced; bring-up alone
  kServices,  // smt and rcu, which have a scenario of their own, with the guest sequencing
  kParams,    // another VMM runs it: only what the guest is told
};

// Adds the flags to `app`, filling `flags`, which must outlive it.
void AddMachineFlags(CLI::App& app, RawFlags& flags, MachineUse use);

// --payload and what goes with it: for `sipi run`.
void AddPayloadFlags(CLI::App& app, RawFlags& flags);

// --html, for commands whose report can be a page.
void AddHtmlFlag(CLI::App& app, RawFlags& flags);

// A flag of one subcommand alone, listed under "This command": its last mention counts. `value`
// must outlive `app`.
void AddCommandFlag(CLI::App& app, const char* name, std::string& value, const char* type,
                    const char* help);

// --kvm-device, which help does not show: another device file, for tests of what is said when KVM
// cannot be used.
void AddKvmDeviceFlag(CLI::App& app, RawFlags& flags);

}  // namespace sipi
