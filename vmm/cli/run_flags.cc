#include "vmm/cli/run_flags.h"

#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "vmm/base/status_macros.h"
#include "vmm/cli/calibration_flag.h"
#include "vmm/cli/cpu_order.h"
#include "vmm/cli/fault_flag.h"
#include "vmm/cli/flag_values.h"
#include "vmm/cli/steal_flag.h"
#include "vmm/cli/strategy_flag.h"
#include "vmm/cli/time_limits.h"
#include "vmm/cpu/host_limits.h"
#include "vmm/machine/simulated_run.h"

namespace sipi {
namespace {

constexpr uint32_t kDefaultCpus = 4;
constexpr uint64_t kMaxDelayUs = 10'000'000;

const Choices<bool>& OnOff() {
  static const Choices<bool> choices = {{"on", true}, {"off", false}};
  return choices;
}

absl::StatusOr<uint32_t> ParseNumber32(const std::string& flag, const std::string& text,
                                       uint64_t min, uint64_t max) {
  ASSIGN_OR_RETURN(const uint64_t value, ParseNumber(flag, text, min, max));
  return static_cast<uint32_t>(value);
}

// What only one of the two machines has. Refused rather than ignored: somebody expects something.
absl::Status CheckMachineFlags(const RawFlags& flags, const RunConfig& config) {
  if (config.machine == MachineKind::kKvm) {
    if (!flags.steal.empty()) {
      return FlagError("--steal",
                       "on KVM the host steals by itself; use it with --machine=sim, or leave it "
                       "out");
    }
    if (flags.host_cores.empty()) return absl::OkStatus();
    return FlagError("--host-cores",
                     "on KVM the host's own cores run the vCPUs; use it with --machine=sim, or "
                     "leave it out (taskset limits a KVM run)");
  }
  const auto only_kvm = [](const char* flag, const char* why) {
    return FlagError(flag, absl::StrCat(why, "; leave it out, or use --machine=kvm"));
  };
  if (config.irqchip != IrqchipKind::kUser) {
    return only_kvm("--irqchip", "the simulator's interrupt fabric is sipi's own APIC model");
  }
  if (flags.driver != "guest") {
    return only_kvm("--driver", "the simulator has no VMM that could sequence");
  }
  if (!flags.memory.empty()) return only_kvm("--memory", "the simulator has what its guest needs");
  if (!flags.payload.empty()) return only_kvm("--payload", "the simulator runs sipi's own guest");
  if (flags.icr != RawFlags().icr) {
    return only_kvm("--icr", "the simulator's APIC does what the SDM says");
  }
  if (flags.count_instructions) {
    return only_kvm("--count-instructions", "the simulator charges for steps, not instructions");
  }
  if (flags.kvm_device != RawFlags().kvm_device) {
    return only_kvm("--kvm-device", "the simulator uses no device");
  }
  return absl::OkStatus();
}

absl::Status SetMachine(const RawFlags& flags, RunConfig& config) {
  ASSIGN_OR_RETURN(config.machine, ParseChoice<MachineKind>(
                                       "--machine", flags.machine,
                                       {{"kvm", MachineKind::kKvm}, {"sim", MachineKind::kSim}}));
  ASSIGN_OR_RETURN(config.irqchip, ParseChoice<IrqchipKind>("--irqchip", flags.irqchip,
                                                            {{"user", IrqchipKind::kUser},
                                                             {"split", IrqchipKind::kSplit},
                                                             {"kernel", IrqchipKind::kKernel}}));
  RETURN_IF_ERROR(CheckMachineFlags(flags, config));
  if (!flags.host_cores.empty()) {
    ASSIGN_OR_RETURN(config.host_cores,
                     ParseNumber32("--host-cores", flags.host_cores, 1, kMaxSimulatedCpus));
  }
  if (!flags.steal.empty()) {
    ASSIGN_OR_RETURN(config.steal, ParseSteal("--steal", flags.steal));
  }
  config.kvm_device = flags.kvm_device;
  if (!flags.memory.empty()) {
    ASSIGN_OR_RETURN(config.memory_bytes, ParseBytes("--memory", flags.memory));
  }
  absl::StatusOr<Profile> profile = LoadProfile(flags.profile);
  if (!profile.ok()) return FlagError("--profile", std::string(profile.status().message()));
  config.profile = *std::move(profile);
  return absl::OkStatus();
}

// How many CPUs were asked for in so many words; 0: not said, the topology says it.
absl::StatusOr<uint32_t> RequestedCpus(const RawFlags& flags, const Profile& profile,
                                       const CpuLimits& limits) {
  if (!flags.cpus.empty()) {
    auto cpus = ParseNumber32("--cpus", flags.cpus, 1, limits.max_cpus);
    const bool positive = flags.cpus.find_first_not_of("0123456789") == std::string::npos &&
                          flags.cpus.find_first_not_of('0') != std::string::npos;
    if (cpus.ok() || !positive) return cpus;
    return FlagError("--cpus",
                     absl::StrCat(Quoted(flags.cpus), " is above the ", limits.whose, " limit of ",
                                  limits.max_cpus, " vCPUs; give at most that many"));
  }
  if (!flags.topology.empty()) return 0;
  if (!flags.apic_ids.empty()) {
    return static_cast<uint32_t>(SplitAt(flags.apic_ids, ',').size());
  }
  if (profile.cpus != 0) return profile.cpus;
  return flags.payload.empty() ? kDefaultCpus : 1;
}

absl::Status HideFeatures(const RawFlags& flags, HiddenFeatures& hidden) {
  if (flags.hide.empty()) return absl::OkStatus();
  for (const std::string& name : SplitAt(flags.hide, ',')) {
    if (name == "x2apic") {
      hidden.x2apic = true;
    } else if (name == "tsc-deadline") {
      hidden.tsc_deadline = true;
    } else {
      return UnknownName("--hide", name, {"x2apic", "tsc-deadline"});
    }
  }
  return absl::OkStatus();
}

// Payloads start where firmware leaves a machine: in xAPIC mode, unless IDs need the other.
absl::StatusOr<abi::ApicMode> ChooseApicMode(const RawFlags& flags, const Topology& topology) {
  if (!flags.apic.empty()) {
    return ParseChoice<abi::ApicMode>(
        "--apic", flags.apic,
        {{"x2apic", abi::ApicMode::kX2Apic}, {"xapic", abi::ApicMode::kXApic}});
  }
  const bool wants_xapic = !flags.payload.empty() || flags.hide.find("x2apic") != std::string::npos;
  const bool xapic = wants_xapic && CheckApicMode(topology, abi::ApicMode::kXApic).ok();
  return xapic ? abi::ApicMode::kXApic : abi::ApicMode::kX2Apic;
}

absl::Status SetTopology(const RawFlags& flags, const CpuLimits& limits, RunConfig& config,
                         std::string* note) {
  ASSIGN_OR_RETURN(const uint32_t cpus, RequestedCpus(flags, config.profile, limits));
  const bool machines_own = flags.topology.empty() && cpus == config.profile.cpus;
  const std::string& spec = machines_own ? config.profile.topology : flags.topology;
  const char* const cpus_flag = machines_own              ? "--profile"
                                : !flags.topology.empty() ? "--topology"
                                : !flags.cpus.empty()     ? "--cpus"
                                                          : "--apic-ids";
  ASSIGN_OR_RETURN(config.topology, WithFlag(cpus_flag, ParseTopology(spec, cpus)));
  config.cpus = config.topology.cpu_count();
  if (!flags.apic_ids.empty()) {
    RETURN_IF_ERROR(WithFlag("--apic-ids", SetApicIds(flags.apic_ids, config.topology)));
  }
  ASSIGN_OR_RETURN(config.apic_mode, ChooseApicMode(flags, config.topology));
  RETURN_IF_ERROR(WithFlag("--apic", CheckApicMode(config.topology, config.apic_mode)));
  RETURN_IF_ERROR(HideFeatures(flags, config.hidden));
  if (config.hidden.x2apic && config.apic_mode == abi::ApicMode::kX2Apic) {
    return FlagError("--hide",
                     "x2apic: this machine is to run in x2APIC mode, which the guest then "
                     "could not know; give --apic=xapic and IDs below 255");
  }
  if (config.machine == MachineKind::kSim) return absl::OkStatus();
  ASSIGN_OR_RETURN(*note, WithFlag(flags.apic_ids.empty() ? cpus_flag : "--apic-ids",
                                   CheckHostLimits(config.topology, limits.max_cpus,
                                                   limits.max_apic_ids, limits.recommended_cpus)));
  return absl::OkStatus();
}

absl::Status SetKickTiming(const RawFlags& flags, RunConfig& config) {
  sequence::KickTiming& kick = config.knobs.kick;
  kick.init_delay_us = static_cast<uint32_t>(config.profile.init_delay_us);
  kick.init_deassert = flags.init_deassert ? 1 : 0;
  if (!flags.init_delay_us.empty()) {
    ASSIGN_OR_RETURN(kick.init_delay_us,
                     ParseNumber32("--init-delay-us", flags.init_delay_us, 0, kMaxDelayUs));
  }
  if (!flags.sipi_count.empty()) {
    ASSIGN_OR_RETURN(const uint32_t count, ParseNumber32("--sipi-count", flags.sipi_count, 1, 8));
    kick.sipi_count = static_cast<uint8_t>(count);
  }
  if (!flags.sipi_delay_us.empty()) {
    const std::vector<std::string> parts = SplitAt(flags.sipi_delay_us, '+');
    if (parts.size() > 2) {
      return FlagError("--sipi-delay-us", absl::StrCat(Quoted(flags.sipi_delay_us),
                                                       " has too many parts; write A or A+B"));
    }
    ASSIGN_OR_RETURN(kick.sipi_delay_us,
                     ParseNumber32("--sipi-delay-us", parts[0], 0, kMaxDelayUs));
    kick.sipi_idle_delay_us = 0;
    if (parts.size() == 2) {
      ASSIGN_OR_RETURN(kick.sipi_idle_delay_us,
                       ParseNumber32("--sipi-delay-us", parts[1], 0, kMaxDelayUs));
    }
  }
  return absl::OkStatus();
}

absl::Status SetApKnobs(const RawFlags& flags, abi::Knobs& knobs) {
  ASSIGN_OR_RETURN(const bool lock,
                   ParseChoice("--trampoline-lock", flags.trampoline_lock, OnOff()));
  knobs.trampoline_lock = lock ? 1 : 0;
  ASSIGN_OR_RETURN(const bool tsc_check, ParseChoice("--tsc-check", flags.tsc_check, OnOff()));
  knobs.tsc_check = tsc_check ? 1 : 0;
  ASSIGN_OR_RETURN(knobs.ap_wait, ParseChoice<abi::WaitMode>("--ap-wait", flags.ap_wait,
                                                             {{"halt", abi::WaitMode::kHalt},
                                                              {"spin", abi::WaitMode::kSpin}}));
  ASSIGN_OR_RETURN(knobs.ap_id_source,
                   ParseChoice<abi::ApIdSource>("--ap-id", flags.ap_id,
                                                {{"apic", abi::ApIdSource::kApic},
                                                 {"cpuid-b", abi::ApIdSource::kCpuidB},
                                                 {"cpuid-1", abi::ApIdSource::kCpuid1}}));
  ASSIGN_OR_RETURN(knobs.cache_setup,
                   ParseChoice<abi::CacheSetup>("--cache-setup", flags.cache_setup,
                                                {{"each", abi::CacheSetup::kEach},
                                                 {"rendezvous", abi::CacheSetup::kRendezvous}}));
  ASSIGN_OR_RETURN(knobs.topology_update, ParseChoice<abi::TopologyUpdate>(
                                              "--topology-update", flags.topology_update,
                                              {{"locked", abi::TopologyUpdate::kLocked},
                                               {"lockless", abi::TopologyUpdate::kLockless}}));
  return absl::OkStatus();
}

absl::Status SetSequencingKnobs(const RawFlags& flags, const Profile& profile, abi::Knobs& knobs) {
  ASSIGN_OR_RETURN(knobs.reuse_scope,
                   ParseChoice<abi::ReuseScope>("--reuse-scope", flags.reuse_scope,
                                                {{"cpu", abi::ReuseScope::kCpu},
                                                 {"core", abi::ReuseScope::kCore},
                                                 {"package", abi::ReuseScope::kPackage},
                                                 {"machine", abi::ReuseScope::kMachine}}));
  ASSIGN_OR_RETURN(knobs.veto, ParseChoice<abi::Veto>("--veto", flags.veto,
                                                      {{"none", abi::Veto::kNone},
                                                       {"vendor", abi::Veto::kVendor},
                                                       {"no-leaf-b", abi::Veto::kNoLeafB},
                                                       {"encrypted", abi::Veto::kEncrypted}}));
  if (!flags.handshake_timeout_ms.empty()) {
    ASSIGN_OR_RETURN(
        knobs.handshake_timeout_ms,
        ParseNumber32("--handshake-timeout-ms", flags.handshake_timeout_ms, 1, 3'600'000));
  }
  ASSIGN_OR_RETURN(knobs.calibration_us,
                   ParseCalibration("--calibration-us", flags.calibration_us,
                                    flags.clock == "known", profile, knobs.calibration_us));
  return absl::OkStatus();
}

absl::Status SetBringUp(const RawFlags& flags, RunConfig& config) {
  ASSIGN_OR_RETURN(config.strategy, ParseStrategy("--strategy", flags.strategy));
  ASSIGN_OR_RETURN(config.driver, ParseChoice<abi::Driver>("--driver", flags.driver,
                                                           {{"guest", abi::Driver::kGuest},
                                                            {"host", abi::Driver::kHost}}));
  ASSIGN_OR_RETURN(config.seed,
                   ParseNumber("--seed", flags.seed, 0, std::numeric_limits<uint64_t>::max()));
  ASSIGN_OR_RETURN(config.order, MakeCpuOrder(flags.order, config.topology, config.seed));
  ASSIGN_OR_RETURN(config.smt, ParseChoice("--smt", flags.smt, OnOff()));
  if (!config.smt) {
    std::erase_if(config.order,
                  [&config](uint32_t cpu) { return config.topology.places[cpu].thread != 0; });
  }
  config.retry = flags.retry;
  if (config.retry && config.driver == abi::Driver::kHost) {
    return FlagError("--retry", "is the guest's to do; leave it out, or use --driver=guest");
  }
  ASSIGN_OR_RETURN(config.clock_known, ParseChoice<bool>("--clock", flags.clock,
                                                         {{"pm-timer", false}, {"known", true}}));
  RETURN_IF_ERROR(SetKickTiming(flags, config));
  RETURN_IF_ERROR(SetApKnobs(flags, config.knobs));
  return SetSequencingKnobs(flags, config.profile, config.knobs);
}

absl::Status SetScenario(const RawFlags& flags, RunConfig& config) {
  ASSIGN_OR_RETURN(config.scenario,
                   ParseChoice<abi::Scenario>("--scenario", flags.scenario,
                                              {{"smpboot", abi::Scenario::kSmpboot},
                                               {"print", abi::Scenario::kPrint},
                                               {"ipi-all", abi::Scenario::kIpiAll},
                                               {"hotplug", abi::Scenario::kHotplug}}));
  ASSIGN_OR_RETURN(config.scenario_value, ParseNumber("--scenario-value", flags.scenario_value, 0,
                                                      std::numeric_limits<uint64_t>::max()));
  const bool prints = config.scenario == abi::Scenario::kPrint;
  if (!prints && flags.scenario_value != RawFlags().scenario_value) {
    return FlagError("--scenario-value", "is for --scenario=print; give that, or leave it out");
  }
  if (!flags.fault.empty()) {
    ASSIGN_OR_RETURN(config.fault, ParseFault(flags.fault, config.cpus));
    if (config.fault.kind == abi::Fault::kTscAhead && config.machine == MachineKind::kKvm) {
      return FlagError("--fault", "tsc-ahead: KVM keeps the TSCs together; give --machine=sim");
    }
  }
  if (!flags.firmware_lies.empty()) {
    ASSIGN_OR_RETURN(config.firmware_lies, ParseFirmwareLies(flags.firmware_lies, config.cpus));
  }
  config.time_limit_ms = config.machine == MachineKind::kSim ? kBringUpTimeLimit.simulated_ms
                                                             : kBringUpTimeLimit.kvm_ms;
  if (!flags.time_limit_s.empty()) {
    ASSIGN_OR_RETURN(const uint32_t seconds,
                     ParseNumber32("--time-limit-s", flags.time_limit_s, 1, 86'400));
    config.time_limit_ms = int64_t{seconds} * 1000;
  }
  config.count_instructions = flags.count_instructions;
  return absl::OkStatus();
}

// Flags that say how sipi's own guest comes up mean nothing to another one.
absl::Status CheckOwnGuestFlags(const RawFlags& flags) {
  const RawFlags defaults;
  const std::pair<const char*, bool> given[] = {
      {"--strategy", flags.strategy != defaults.strategy},
      {"--driver", flags.driver != defaults.driver},
      {"--order", flags.order != defaults.order},
      {"--smt", flags.smt != defaults.smt},
      {"--retry", flags.retry},
      {"--scenario", flags.scenario != defaults.scenario},
      {"--scenario-value", flags.scenario_value != defaults.scenario_value},
      {"--init-delay-us", !flags.init_delay_us.empty()},
      {"--sipi-count", !flags.sipi_count.empty()},
      {"--sipi-delay-us", !flags.sipi_delay_us.empty()},
      {"--init-deassert", flags.init_deassert},
      {"--trampoline-lock", flags.trampoline_lock != defaults.trampoline_lock},
      {"--ap-wait", flags.ap_wait != defaults.ap_wait},
      {"--ap-id", flags.ap_id != defaults.ap_id},
      {"--cache-setup", flags.cache_setup != defaults.cache_setup},
      {"--topology-update", flags.topology_update != defaults.topology_update},
      {"--tsc-check", flags.tsc_check != defaults.tsc_check},
      {"--reuse-scope", flags.reuse_scope != defaults.reuse_scope},
      {"--veto", flags.veto != defaults.veto},
      {"--handshake-timeout-ms", !flags.handshake_timeout_ms.empty()},
      {"--calibration-us", !flags.calibration_us.empty()},
      {"--clock", flags.clock != defaults.clock},
  };
  for (const auto& [flag, is_given] : given) {
    if (!is_given) continue;
    return FlagError(flag, "is for sipi's own guest and does nothing to a --payload; leave it out");
  }
  return absl::OkStatus();
}

absl::Status SetPayload(const RawFlags& flags, RunConfig& config) {
  ASSIGN_OR_RETURN(config.kvm_icr,
                   ParseChoice<bool>("--icr", flags.icr, {{"sdm", false}, {"kvm", true}}));
  if (config.kvm_icr && config.irqchip != IrqchipKind::kUser) {
    return FlagError("--icr",
                     "is for sipi's own APIC; KVM's always does as it does: leave it out, "
                     "or give --irqchip=user");
  }
  if (flags.payload.empty()) {
    if (!flags.append.empty()) return FlagError("--append", "needs --payload=FILE");
    if (!flags.environment.empty()) return FlagError("--env", "needs --payload=FILE");
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(CheckOwnGuestFlags(flags));
  for (const std::string& line : flags.environment) {
    if (line.find('=') != std::string::npos && line[0] != '=' &&
        line.find('\n') == std::string::npos) {
      continue;
    }
    return FlagError("--env", absl::StrCat(Quoted(line), " is no line KEY=VALUE"));
  }
  switch (config.fault.kind) {
    case abi::Fault::kNone:
    case abi::Fault::kNoStart:
    case abi::Fault::kLate:
    case abi::Fault::kLostInit:
    case abi::Fault::kLostSipi1:
    case abi::Fault::kLostSipi2:
    case abi::Fault::kLostSipis:
      break;
    default:
      return FlagError("--fault",
                       "is one that sipi's own guest commits; a --payload can have "
                       "no-start, late and lost INITs and SIPIs");
  }
  config.payload = PayloadConfig{flags.payload, flags.append, flags.environment};
  return absl::OkStatus();
}

}  // namespace

CpuLimits SimulatorCpuLimits() {
  CpuLimits limits;
  limits.max_cpus = kMaxSimulatedCpus;
  limits.whose = "simulator's";
  return limits;
}

absl::StatusOr<CheckedConfig> MakeRunConfig(const RawFlags& flags, const CpuLimits& limits) {
  CheckedConfig checked;
  RETURN_IF_ERROR(SetMachine(flags, checked.config));
  RETURN_IF_ERROR(SetTopology(flags, limits, checked.config, &checked.note));
  RETURN_IF_ERROR(SetBringUp(flags, checked.config));
  RETURN_IF_ERROR(SetScenario(flags, checked.config));
  RETURN_IF_ERROR(SetPayload(flags, checked.config));
  return checked;
}

}  // namespace sipi
