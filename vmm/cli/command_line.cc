#include "vmm/cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "vmm/base/status_macros.h"
#include "vmm/cli/flag_values.h"
#include "vmm/cli/strategy_flag.h"
#include "vmm/timeline/strategy_name.h"

namespace sipi {
namespace {

constexpr char kDefaultStrategies[] =
    "serial,kick,kick+wait,kick+reuse,primary-first,full,full+reuse,broadcast,tree";
constexpr uint64_t kMaxRuns = 10'000;

struct RawCompare {
  std::string strategies = kDefaultStrategies;
  std::string runs = "5";
  std::string baseline = "serial";
  std::string runs_dir;
};

// Everything CLI11 fills. Its options hold references, so this never moves.
struct Parser {
  CLI::App app{
      "sipi boots many x86_64 vCPUs, on KVM or simulated, and shows where every microsecond of SMP "
      "bring-up goes.",
      "sipi"};
  RawFlags flags;
  RawCompare compare;
  std::string params_file;
  CLI::App* run = nullptr;
  CLI::App* compare_app = nullptr;
  CLI::App* doctor = nullptr;
  CLI::App* params = nullptr;
  CLI::App* bench = nullptr;
  CLI::App* explore = nullptr;
  RawServices services;
  CLI::App* smt = nullptr;
  CLI::App* rcu = nullptr;
  RawExplore raw_explore;
  std::string bench_what;
  std::string bench_runs = "5";
};

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
  p.bench->add_option("--runs", p.bench_runs, "seeds per row (default 5)")
      ->type_name("N")
      ->group("This command");
}

struct RcuVerb {
  const char* name;
  Verb verb;
  ServiceUse use;
  const char* what;
  const char* example;
};
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
  AddMachineFlags(*p.smt, p.flags, /*one_strategy=*/true);
  AddHtmlFlag(*p.smt, p.flags);
  AddServiceFlags(*p.smt, p.services, ServiceUse::kSmt);
  p.rcu = AddVerb(p, "rcu", "RCU of the guest kernel: scale, ref, callrcu, torture",
                  "  sipi rcu scale --cpus=16\n\n`sipi rcu COMMAND --help` tells its flags.");
  for (const RcuVerb& each : kRcuVerbs) {
    CLI::App* const verb = p.rcu->add_subcommand(each.name, each.what);
    verb->allow_extras();
    verb->footer(absl::StrCat("\nExample:\n", each.example));
    AddMachineFlags(*verb, p.flags, /*one_strategy=*/true);
    AddServiceFlags(*verb, p.services, each.use);
  }
}

void BuildParser(Parser& p) {
  p.app.allow_extras();
  p.app.footer(
      "\nExample:\n  sipi compare --cpus=32\n\n`sipi COMMAND --help` tells the flags of a "
      "command.");
  p.run = AddVerb(p, "run", "Boot one machine and report its bring-up",
                  "  sipi run --cpus=64 --strategy=full+reuse --trace=full.json");
  AddMachineFlags(*p.run, p.flags, /*one_strategy=*/true);
  AddPayloadFlags(*p.run, p.flags);
  AddServiceFlags(*p.run, p.services, ServiceUse::kRun);
  p.compare_app = AddVerb(
      p, "compare", "Boot several strategies alternately and print one table",
      "  sipi compare --cpus=64 --strategies=serial,kick,full --runs=5 --json=compare.json");
  AddMachineFlags(*p.compare_app, p.flags, /*one_strategy=*/false);
  AddCompareFlags(*p.compare_app, p.compare);
  AddServiceVerbs(p);
  p.doctor = AddVerb(p, "doctor", "Say whether and how KVM can be used here", "  sipi doctor");
  AddKvmDeviceFlag(*p.doctor, p.flags);
  AddBenchVerb(p);
  p.explore =
      AddVerb(p, "explore", "Search the guest kernel for bugs: schedules and faults at random",
              "  sipi explore --schedules=1000000 --state=explore.json");
  AddExploreFlags(*p.explore, p.raw_explore);
  p.params =
      AddVerb(p, "params", "Write the guest's boot parameters, to boot guest.elf under another VMM",
              "  sipi params --cpus=64 --out=params.bin\n"
              "  qemu-system-x86_64 -M microvm ... -smp 64 -kernel guest.elf -initrd params.bin");
  AddMachineFlags(*p.params, p.flags, /*one_strategy=*/true);
  AddServiceFlags(*p.params, p.services, ServiceUse::kRun);
  p.params->add_option("--out", p.params_file, "the file to write")
      ->type_name("FILE")
      ->group("This command");
}

std::vector<std::string> FlagNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_group().empty()) names.push_back(option->get_name());
  }
  return names;
}

absl::Status Unexpected(const std::string& word, const CLI::App& app, const std::string& verb) {
  const std::string help =
      absl::StrCat("sipi ", verb, verb.empty() ? "" : " ", "--help tells what there is");
  if (word.rfind('-', 0) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("unexpected word ", Quoted(word), "; flags are --NAME=VALUE; ", help));
  }
  const std::string flag = word.substr(0, word.find('='));
  const std::vector<std::string> known = FlagNames(app);
  if (std::find(known.begin(), known.end(), flag) != known.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("flag ", Quoted(flag), " stands in the wrong place; put it after ", verb));
  }
  const std::string hint = DidYouMean(flag, known);
  return absl::InvalidArgumentError(
      absl::StrCat("unknown flag ", Quoted(flag), hint, hint.empty() ? "; " : " ", help));
}

// The command after `rcu`.
absl::StatusOr<CLI::App*> ChosenRcuVerb(const Parser& p) {
  std::vector<std::string> verbs;
  for (const RcuVerb& each : kRcuVerbs) verbs.emplace_back(each.name);
  const std::vector<CLI::App*> chosen = p.rcu->get_subcommands();
  const std::vector<std::string> before = p.rcu->remaining();
  if (chosen.empty()) {
    if (before.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("rcu: of what? give ", JoinNames(verbs), "; sipi rcu --help tells more"));
    }
    if (before[0].rfind('-', 0) == 0) return Unexpected(before[0], *p.rcu, "rcu");
    return UnknownName("rcu", before[0], verbs);
  }
  const std::string name = absl::StrCat("rcu ", chosen[0]->get_name());
  if (chosen.size() > 1) return Unexpected(chosen[1]->get_name(), *chosen[0], name);
  if (!before.empty()) return Unexpected(before[0], *chosen[0], name);
  const std::vector<std::string> after = chosen[0]->remaining();
  if (!after.empty()) return Unexpected(after[0], *chosen[0], name);
  return chosen[0];
}

// Checks that exactly one verb was given and nothing was left over.
absl::StatusOr<CLI::App*> ChosenVerb(const Parser& p) {
  const std::vector<std::string> verbs = {"run",     "compare", "smt",   "rcu",
                                          "explore", "doctor",  "bench", "params"};
  const std::vector<CLI::App*> chosen = p.app.get_subcommands();
  const std::vector<std::string> before = p.app.remaining();
  if (chosen.empty()) {
    if (before.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("no command; give ", JoinNames(verbs), "; sipi --help tells more"));
    }
    if (before[0].rfind('-', 0) == 0) return Unexpected(before[0], p.app, "");
    return UnknownName("command", before[0], verbs);
  }
  const std::string name = chosen[0]->get_name();
  if (chosen.size() > 1) return Unexpected(chosen[1]->get_name(), *chosen[0], name);
  if (!before.empty()) return Unexpected(before[0], *chosen[0], name);
  const std::vector<std::string> after = chosen[0]->remaining();
  if (chosen[0] == p.rcu) return ChosenRcuVerb(p);
  if (!after.empty()) return Unexpected(after[0], *chosen[0], name);
  return chosen[0];
}

// The flags of a run with services, and what they make of its configuration.
absl::Status CheckServices(const Parser& p, ServiceUse use, CommandLine& line) {
  if (use != ServiceUse::kRun && p.flags.scenario != RawFlags().scenario) {
    return FlagError("--scenario", "this command has its own; leave it out, or use sipi run");
  }
  line.services = p.services;
  RETURN_IF_ERROR(SetServices(p.services, use, !p.flags.time_limit_s.empty(), line.checked.config));
  if (use != ServiceUse::kCallRcu) return absl::OkStatus();
  ASSIGN_OR_RETURN(line.pinnings, ParsePinnings(p.services.pinning));
  return absl::OkStatus();
}

absl::StatusOr<CompareOptions> CheckCompare(const RawCompare& raw) {
  CompareOptions options;
  ASSIGN_OR_RETURN(options.strategies, ParseStrategyList("--strategies", raw.strategies));
  ASSIGN_OR_RETURN(const uint64_t runs, ParseNumber("--runs", raw.runs, 1, kMaxRuns));
  options.runs = static_cast<uint32_t>(runs);
  ASSIGN_OR_RETURN(const sequence::Strategy baseline, ParseStrategy("--baseline", raw.baseline));
  options.baseline = StrategyName(baseline);
  options.runs_dir = raw.runs_dir;
  const bool listed =
      std::any_of(options.strategies.begin(), options.strategies.end(),
                  [&](const sequence::Strategy& s) { return StrategyName(s) == options.baseline; });
  if (!listed) options.strategies.insert(options.strategies.begin(), baseline);
  return options;
}

// The option of any command that `word` names, without its value; null if none has it.
const CLI::Option* FindOption(const CLI::App& app, const std::string& word) {
  for (const CLI::App* verb : app.get_subcommands(nullptr)) {
    if (const CLI::Option* option = verb->get_option_no_throw(word)) return option;
    if (const CLI::Option* option = FindOption(*verb, word)) return option;
  }
  return nullptr;
}

// For CLI11 `--flag=` has no value and takes the next word, be it a flag. Here it is an error, or
// for what may be empty (--append) becomes two words, of which CLI11 takes an empty one.
absl::StatusOr<std::vector<std::string>> WithEmptyValues(const Parser& p,
                                                         const std::vector<std::string>& args) {
  std::vector<std::string> words;
  bool is_value = false;  // of the word before, written with a space
  for (const std::string& word : args) {
    const bool empty = !is_value && word.size() > 3 && word.rfind("--", 0) == 0 &&
                       word.find('=') == word.size() - 1;
    const std::string name = empty ? word.substr(0, word.size() - 1) : word;
    const CLI::Option* option = is_value ? nullptr : FindOption(p.app, name);
    is_value = !empty && option != nullptr && option->get_expected_min() > 0;
    if (!empty || option == nullptr) {  // CLI11 tells of a flag that nobody knows
      words.push_back(word);
      continue;
    }
    if (name != "--append") {
      return FlagError(name, "nothing stands after its =; give a value, or leave the flag out");
    }
    words.insert(words.end(), {name, ""});
  }
  return words;
}

// CLI11's own errors: a flag without its value, and the like. Its texts can span lines.
absl::Status FromCli11(const CLI::ParseError& error) {
  std::string text = error.what();
  text = text.substr(0, text.find('\n'));
  return absl::InvalidArgumentError(
      absl::StrCat(text, "; flags are --NAME=VALUE, sipi --help tells what there is"));
}

absl::StatusOr<CommandLine> Check(const Parser& p, CpuLimits (*limits)(const std::string&)) {
  ASSIGN_OR_RETURN(const CLI::App* verb, ChosenVerb(p));
  CommandLine line;
  line.flags = p.flags;
  line.verb = Verb::kDoctor;
  if (verb == p.doctor) return line;
  if (verb == p.explore) {
    line.verb = Verb::kExplore;
    ASSIGN_OR_RETURN(line.explore, CheckExplore(p.raw_explore));
    return line;
  }
  if (verb == p.bench) {
    line.verb = Verb::kPublished;
    if (p.bench_what != "published") {
      return p.bench_what.empty() ? absl::InvalidArgumentError("bench: of what? give published")
                                  : UnknownName("bench", p.bench_what, {"published"});
    }
    ASSIGN_OR_RETURN(const uint64_t runs, ParseNumber("--runs", p.bench_runs, 1, kMaxRuns));
    line.published_runs = static_cast<uint32_t>(runs);
    return line;
  }
  if (verb == p.params && p.flags.machine == "sim") {
    return FlagError("--machine",
                     "the parameters are for guest.elf under another VMM; leave it out");
  }
  const bool simulated = p.flags.machine == "sim";
  ASSIGN_OR_RETURN(line.checked, MakeRunConfig(p.flags, simulated ? SimulatorCpuLimits()
                                                                  : limits(p.flags.kvm_device)));
  line.verb = Verb::kRun;
  if (verb == p.run || verb == p.params) {
    RETURN_IF_ERROR(CheckServices(p, ServiceUse::kRun, line));
  } else if (verb == p.smt) {
    line.verb = Verb::kSmt;
    RETURN_IF_ERROR(CheckServices(p, ServiceUse::kSmt, line));
  }
  for (const RcuVerb& each : kRcuVerbs) {
    if (verb->get_parent() != p.rcu || verb->get_name() != each.name) continue;
    line.verb = each.verb;
    RETURN_IF_ERROR(CheckServices(p, each.use, line));
  }
  if (verb == p.compare_app) {
    line.verb = Verb::kCompare;
    ASSIGN_OR_RETURN(line.compare, CheckCompare(p.compare));
  } else if (verb == p.params) {
    line.verb = Verb::kParams;
    line.params_file = p.params_file;
    if (line.params_file.empty()) {
      return FlagError("--out", "is missing; name the file to write, e.g. --out=params.bin");
    }
  }
  return line;
}

// The help of the verb that was named before --help, or of the program.
std::string HelpText(const Parser& p) {
  const std::vector<CLI::App*> chosen = p.app.get_subcommands();
  if (chosen.empty()) return p.app.help();
  const std::vector<CLI::App*> nested = chosen[0]->get_subcommands();
  return nested.empty() ? chosen[0]->help() : nested[0]->help();
}

}  // namespace

absl::StatusOr<CommandLine> ParseCommandLine(const std::vector<std::string>& args,
                                             CpuLimits (*limits)(const std::string& kvm_device)) {
  // CLI11 throws; nothing of that leaves this function.
  try {
    Parser parser;
    BuildParser(parser);
    ASSIGN_OR_RETURN(const std::vector<std::string> words, WithEmptyValues(parser, args));
    std::vector<std::string> reversed(words.rbegin(), words.rend());
    try {
      parser.app.parse(std::move(reversed));
    } catch (const CLI::CallForHelp&) {
      CommandLine line;
      line.help = HelpText(parser);
      return line;
    } catch (const CLI::ParseError& error) {
      return FromCli11(error);
    }
    return Check(parser, limits);
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("the command line: ", error.what()));
  }
}

}  // namespace sipi
