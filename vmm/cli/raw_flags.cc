#include "vmm/cli/raw_flags.h"

#include <CLI/CLI.hpp>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "vmm/cli/time_limits.h"
#include "vmm/profile/profile.h"

namespace sipi {
namespace {

// Sets of MachineUse.
constexpr unsigned Bit(MachineUse use) { return 1u << static_cast<unsigned>(use); }
constexpr unsigned kAll = ~0u;
constexpr unsigned kNotParams = kAll & ~Bit(MachineUse::kParams);
constexpr unsigned kNotServices = kAll & ~Bit(MachineUse::kServices);

struct TextFlag {
  const char* name;
  std::string RawFlags::*member;
  const char* value;  // how help shows it
  const char* help;
  unsigned uses = kAll;  // who has it
  // Who takes it, to refuse it with words of its own, but does not show it.
  unsigned refused = 0;
};

struct SwitchFlag {
  const char* name;
  bool RawFlags::*member;
  const char* help;
  unsigned uses = kAll;
};

using R = RawFlags;

constexpr TextFlag kMachineFlags[] = {
    {"--machine", &R::machine, "kvm|sim",
     "what runs the guest: vCPUs on KVM, or simulated CPUs in virtual time (default kvm)",
     kNotParams, Bit(MachineUse::kParams)},
    {"--irqchip", &R::irqchip, "user|split|kernel",
     "whose local APIC and INIT/SIPI: sipi's own model, KVM's with our I/O APIC, KVM's (default "
     "user)",
     kNotParams},
    {"--apic", &R::apic, "x2apic|xapic",
     "APIC mode of the guest; xapic takes 255 CPUs (default x2apic; for a payload xapic, where its "
     "IDs "
     "fit)"},
    {"--hide", &R::hide, "LIST", "CPUID features that the guest does not see: x2apic, tsc-deadline",
     kNotParams},
    {"--cpus", &R::cpus, "N",
     "number of vCPUs (default: the topology's or the profile's, else 4; a payload's 1)"},
    {"--topology", &R::topology, "SPEC",
     "e.g. sockets=2,dies=1,cores=16,threads=2,nodes=2[,numbering=siblings-last][,stride=K]"},
    {"--apic-ids", &R::apic_ids, "LIST", "APIC ID of each CPU, e.g. 0,7,254,4095"},
    {"--host-cores", &R::host_cores, "M",
     "with --machine=sim: all CPUs share so many cores (default: one each)", kNotParams},
    {"--steal", &R::steal, "PERIOD:MIN:MAX",
     "with --machine=sim: every PERIOD ms each CPU loses its core for MIN to MAX ms", kNotParams},
    {"--memory", &R::memory, "SIZE",
     "guest memory, e.g. 512M (default: what the guest needs; a payload's 128M)", kNotParams},
    {"--profile", &R::profile, "NAME|FILE", nullptr},
};

constexpr TextFlag kBringUpFlags[] = {
    {"--driver", &R::driver, "guest|host",
     "who sequences: the guest's boot CPU, or the VMM (default guest)",
     Bit(MachineUse::kRun) | Bit(MachineUse::kCompare),
     Bit(MachineUse::kServices) | Bit(MachineUse::kParams)},
    {"--order", &R::order, "ORDER",
     "id, reverse, node, siblings-last, random or file:PATH (default id)"},
    {"--smt", &R::smt, "on|off", "off: leave siblings out, as Linux's nosmt (default on)"},
    {"--seed", &R::seed, "N", "of random orders and of the profile's jitter (default 1)"},
};

constexpr TextFlag kKnobFlags[] = {
    {"--init-delay-us", &R::init_delay_us, "US",
     "wait after INIT; 10000 on old parts (default the profile's, else 0)"},
    {"--sipi-count", &R::sipi_count, "N", "SIPIs per kick (default 2)"},
    {"--sipi-delay-us", &R::sipi_delay_us, "A[+B]",
     "wait after each SIPI, and again once the ICR is idle; 300+200 on old parts (default 10+10)"},
    {"--trampoline-lock", &R::trampoline_lock, "on|off",
     "APs share one trampoline stack behind a lock (default on)"},
    {"--ap-wait", &R::ap_wait, "halt|spin", "how a waiting CPU waits (default halt)"},
    {"--ap-id", &R::ap_id, "apic|cpuid-b|cpuid-1", "where an AP takes its ID from (default apic)"},
    {"--cache-setup", &R::cache_setup, "each|rendezvous",
     "MTRR/PAT set-up per CPU, or once at the end (default each)"},
    {"--topology-update", &R::topology_update, "locked|lockless",
     "how APs add themselves to the sibling masks (default locked)"},
    {"--tsc-check", &R::tsc_check, "on|off",
     "check each AP's TSC against the boot CPU's (default off)"},
    {"--reuse-scope", &R::reuse_scope, "cpu|core|package|machine",
     "how far +reuse shares a calibration (default machine)"},
    {"--veto", &R::veto, "none|vendor|no-leaf-b|encrypted",
     "refuse parallel bring-up for that reason (default none)"},
    {"--handshake-timeout-ms", &R::handshake_timeout_ms, "MS",
     "bound of every wait for an AP (default 10000); full and broadcast give up after one in which "
     "none arrives, tree after a second one"},
    {"--calibration-us", &R::calibration_us, "US",
     "window of one calibration, up to 4000000 unless --clock=known (default the profile's, else "
     "1000)"},
    {"--clock", &R::clock, "pm-timer|known",
     "calibrate against the PM timer, or be told the frequency (default pm-timer)"},
};

constexpr TextFlag kFaultFlags[] = {
    {"--fault", &R::fault, "KIND@CPU[:VALUE]",
     "what to break: no-start, lost-init, lost-sipi1, lost-sipi2, lost-sipis, triple-fault, hang, "
     "halt-all, bad-insn, "
     "exception, late@CPU:MS, fail-step@CPU:STATE, wild-mmio, wild-icr, "
     "tsc-ahead@CPU:TICKS (simulated)"},
    {"--firmware-lies", &R::firmware_lies, "CPU[,CPU]",
     "CPUs whose CPUID shows another ID than their APIC"},
    {"--scenario", &R::scenario, "smpboot|print|ipi-all|hotplug",
     "what the guest does once it is up (default smpboot)", kNotServices,
     Bit(MachineUse::kServices)},
    {"--scenario-value", &R::scenario_value, "N", "the scenario's number: bytes in all for print",
     kNotServices},
};

constexpr TextFlag kOutputFlags[] = {
    {"--time-limit-s", &R::time_limit_s, "S", nullptr, kNotParams},
    {"--serial", &R::serial, "FILE|-|none", "where the guest's serial output goes", kNotParams},
    {"--json", &R::json, "FILE",
     "write the result as JSON (docs/formats.md); - is standard output, without the report",
     kNotParams},
};

constexpr TextFlag kSingleRunFlags[] = {
    {"--strategy", &R::strategy, "NAME[+reuse][+overlap]",
     "serial, kick, kick+wait, primary-first, full, broadcast or tree (default serial)",
     kAll & ~Bit(MachineUse::kCompare)},
    {"--trace", &R::trace, "FILE", "write a trace for ui.perfetto.dev or chrome://tracing",
     kNotParams & ~Bit(MachineUse::kCompare)},
};

constexpr TextFlag kPayloadFlags[] = {
    {"--payload", &R::payload, "FILE",
     "boot this image instead of sipi's own guest: ELF with PVH note, 64-bit ELF, multiboot 1; "
     "ends "
     "with its exit status"},
    {"--append", &R::append, "TEXT", "the payload's command line"},
    {"--icr", &R::icr, "sdm|kvm",
     "what an interrupt command does that the SDM calls invalid (INIT or NMI to self): nothing, or "
     "what KVM's APIC does (default sdm)"},
};

constexpr SwitchFlag kSwitches[] = {
    {"--retry", &R::retry, "bring CPUs that failed up once more"},
    {"--init-deassert", &R::init_deassert, "also send the INIT level de-assert"},
    {"--count-instructions", &R::count_instructions,
     "also read KVM's count of emulated instructions", kNotParams},
    {"--quiet", &R::quiet, "print no report and no progress"},
};

void AddText(CLI::App& app, const char* name, std::string& value, const char* type,
             const std::string& help, const char* group) {
  app.add_option(name, value, help)
      ->type_name(type)
      ->group(group)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

// Help that something else knows.
std::string HelpOf(const TextFlag& flag) {
  if (flag.help != nullptr) return flag.help;
  if (flag.member == &R::time_limit_s) return BringUpTimeLimitHelp();
  return absl::StrCat("latencies of a machine to impose: ",
                      absl::StrJoin(BuiltinProfileNames(), ", "), ", or a JSON file");
}

template <size_t N>
void AddAll(CLI::App& app, RawFlags& flags, MachineUse use, const TextFlag (&table)[N],
            const char* group) {
  for (const TextFlag& flag : table) {
    if (((flag.uses | flag.refused) & Bit(use)) == 0) continue;
    const bool shown = (flag.uses & Bit(use)) != 0;
    const bool bring_up_only = use == MachineUse::kCompare && flag.member == &R::scenario;
    AddText(app, flag.name, flags.*flag.member,
            bring_up_only ? "smpboot|print|ipi-all" : flag.value, HelpOf(flag), shown ? group : "");
  }
}

}  // namespace

void AddMachineFlags(CLI::App& app, RawFlags& flags, MachineUse use) {
  AddAll(app, flags, use, kMachineFlags, "Machine");
  AddAll(app, flags, use, kBringUpFlags, "Bring-up");
  AddAll(app, flags, use, kKnobFlags, "Knobs");
  AddAll(app, flags, use, kFaultFlags, "Faults and scenarios");
  AddAll(app, flags, use, kOutputFlags, "Output");
  AddAll(app, flags, use, kSingleRunFlags, "This command");
  for (const SwitchFlag& flag : kSwitches) {
    if ((flag.uses & Bit(use)) == 0) continue;
    app.add_flag(flag.name, flags.*flag.member, flag.help)
        ->group("Switches")
        ->disable_flag_override();
  }
  AddKvmDeviceFlag(app, flags);
}

void AddPayloadFlags(CLI::App& app, RawFlags& flags) {
  AddAll(app, flags, MachineUse::kRun, kPayloadFlags, "Payload");
  app.add_option("--env", flags.environment,
                 "a line of the payload's environment, handed over as a module; may be repeated")
      ->type_name("KEY=VALUE")
      ->group("Payload")
      ->allow_extra_args(false);
}

void AddHtmlFlag(CLI::App& app, RawFlags& flags) {
  app.add_option("--html", flags.html, "write the report as a page of its own")
      ->type_name("FILE")
      ->group("Output")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

void AddCommandFlag(CLI::App& app, const char* name, std::string& value, const char* type,
                    const char* help) {
  AddText(app, name, value, type, help, "This command");
}

void AddKvmDeviceFlag(CLI::App& app, RawFlags& flags) {
  app.add_option("--kvm-device", flags.kvm_device)->group("");
}

}  // namespace sipi
