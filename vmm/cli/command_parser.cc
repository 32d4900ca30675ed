#include "vmm/cli/command_parser.h"

#include "absl/strings/str_cat.h"
#include "vmm/base/version.h"

namespace sipi {
namespace {

CLI::App* AddVerb(Parser& parser, const char* name, const char* what, const char* example) {
  CLI::App* verb = parser.app.add_subcommand(name, what);
  verb->allow_extras();  // so that unknown flags come back to us, for a better message
  verb->footer(absl::StrCat("\nExample:\n", example));
  return verb;
}

void AddCompareFlags(CLI::App& app, RawCompare& compare) {
  const auto add = [&app](auto&&... flag) { AddCommandFlag(app, flag...); };
  add("--strategies", compare.strategies, "LIST|all",
      "which to compare, e.g. serial,kick,full+reuse (default: nine of them)");
  add("--runs", compare.runs, "N", "runs of each, alternating (default 5)");
  add("--baseline", compare.baseline, "NAME", "what the ratios refer to (default serial)");
  add("--runs-dir", compare.runs_dir, "DIR", "write each run's JSON (sipi.run/1) there");
}

void AddBenchVerb(Parser& p) {
  p.bench = AddVerb(p, "bench", "Hold the simulator against figures that others have published",
                    "  sipi bench published");
  p.bench->add_option("what", p.bench_what, "published")->group("This command");
  AddCommandFlag(*p.bench, "--runs", p.bench_runs, "N", "seeds per row (default 5)");
  AddCommandFlag(*p.bench, "--json", p.flags.json, "FILE|-", "write sipi.published/1 there");
}

constexpr RcuVerb kRcuVerbs[] = {
    {"scale", Verb::kRcuScale, ServiceUse::kRcuScale, "Time grace periods, as rcuscale does",
     "  sipi rcu scale --cpus=16 --expedited"},
    {"ref", Verb::kRcuRef, ServiceUse::kRcuRef, "Time readers, as refscale does",
     "  sipi rcu ref --cpus=4 --rcu-flavour=non-preemptible"},
    {"callrcu", Verb::kRcuCallRcu, ServiceUse::kCallRcu,
     "Compare when call_rcu workers bind themselves to their CPUs",
     "  sipi rcu callrcu --cpus=8 --callbacks=10000"},
    {"torture", Verb::kRcuTorture, ServiceUse::kTorture,
     "Look for what RCU must never do, as rcutorture does",
     "  sipi rcu torture --cpus=16 --seconds=60"},
};

void AddServiceVerbs(Parser& p) {
  p.smt = AddVerb(p, "smt", "Switch SMT off and on by each approach, and compare",
                  "  sipi smt --cpus=32 --topology=threads=8 --approach=all");
  AddMachineFlags(*p.smt, p.flags, MachineUse::kServices);
  AddHtmlFlag(*p.smt, p.flags);
  AddServiceFlags(*p.smt, p.services, ServiceUse::kSmt);
  p.rcu = AddVerb(p, "rcu", "RCU of the guest kernel: scale, ref, callrcu, torture",
                  "  sipi rcu scale --cpus=16\n\n`sipi rcu COMMAND --help` tells its flags.");
  for (const RcuVerb& each : kRcuVerbs) {
    CLI::App* const verb = p.rcu->add_subcommand(each.name, each.what);
    verb->allow_extras();
    verb->footer(absl::StrCat("\nExample:\n", each.example));
    AddMachineFlags(*verb, p.flags, MachineUse::kServices);
    AddServiceFlags(*verb, p.services, each.use);
  }
}

}  // namespace

std::span<const RcuVerb> RcuVerbs() { return kRcuVerbs; }

void BuildParser(Parser& p) {
  p.app.allow_extras();
  p.app.set_version_flag("--version", absl::StrCat("sipi ", Version()), "print the version");
  p.app.footer(
      "\nExample:\n  sipi compare --cpus=32\n\n`sipi COMMAND --help` tells the flags of a "
      "command.");
  p.run = AddVerb(p, "run", "Boot one machine and report its bring-up",
                  "  sipi run --cpus=64 --strategy=full+reuse --trace=full.json");
  AddMachineFlags(*p.run, p.flags, MachineUse::kRun);
  AddPayloadFlags(*p.run, p.flags);
  AddServiceFlags(*p.run, p.services, ServiceUse::kRun);
  p.compare_app = AddVerb(
      p, "compare", "Boot several strategies alternately and print one table",
      "  sipi compare --cpus=64 --strategies=serial,kick,full --runs=5 --json=compare.json");
  AddMachineFlags(*p.compare_app, p.flags, MachineUse::kCompare);
  AddCompareFlags(*p.compare_app, p.compare);
  AddServiceVerbs(p);
  p.explore =
      AddVerb(p, "explore", "Search the guest kernel for bugs: schedules and faults at random",
              "  sipi explore --schedules=1000000 --state=explore.json");
  AddExploreFlags(*p.explore, p.raw_explore);
  p.doctor = AddVerb(p, "doctor", "Say whether and how KVM can be used here", "  sipi doctor");
  AddKvmDeviceFlag(*p.doctor, p.flags);
  AddBenchVerb(p);
  p.params =
      AddVerb(p, "params", "Write the guest's boot parameters, to boot guest.elf under another VMM",
              "  sipi params --cpus=64 --out=params.bin\n"
              "  qemu-system-x86_64 -M microvm ... -smp 64 -kernel guest.elf -initrd params.bin");
  AddMachineFlags(*p.params, p.flags, MachineUse::kParams);
  AddServiceFlags(*p.params, p.services, ServiceUse::kRun);
  p.params->add_option("--out", p.params_file, "the file to write")
      ->type_name("FILE")
      ->group("This command");
}

std::string HelpText(const Parser& p) {
  const std::vector<CLI::App*> chosen = p.app.get_subcommands();
  if (chosen.empty()) return p.app.help();
  // For CLI11 it can be left out, since the error for that is ours.
  if (chosen[0] == p.bench) p.bench->get_option("what")->required();
  const std::vector<CLI::App*> nested = chosen[0]->get_subcommands();
  return nested.empty() ? chosen[0]->help("sipi")
                        : nested[0]->help(absl::StrCat("sipi ", chosen[0]->get_name()));
}

}  // namespace sipi
