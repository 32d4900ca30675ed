#include "vmm/cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "vmm/base/status_macros.h"
#include "vmm/cli/command_parser.h"
#include "vmm/cli/flag_values.h"
#include "vmm/cli/strategy_flag.h"
#include "vmm/timeline/strategy_name.h"

namespace sipi {
namespace {

constexpr uint64_t kMaxRuns = 10'000;

std::vector<std::string> FlagNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_group().empty()) names.push_back(option->get_name());
  }
  return names;
}

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands(nullptr)) names.push_back(verb->get_name());
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
  const std::vector<std::string> verbs = CommandNames(*p.rcu);
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
  const std::vector<std::string> verbs = CommandNames(p.app);
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
  if (!p.flags.trace.empty() && line.pinnings.size() > 1) {
    return FlagError("--trace",
                     "one file holds one run, and there is one for each behaviour; "
                     "choose one with --pinning");
  }
  return absl::OkStatus();
}

absl::Status CheckBenchWhat(const Parser& p) {
  if (p.bench_what == "published") return absl::OkStatus();
  return p.bench_what.empty() ? absl::InvalidArgumentError("bench: of what? give published")
                              : UnknownName("bench", p.bench_what, {"published"});
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

const CLI::App* Subcommand(const CLI::App& app, const std::string& word) {
  for (const CLI::App* verb : app.get_subcommands(nullptr)) {
    if (verb->get_name() == word) return verb;
  }
  return nullptr;
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
// for what may be empty (--append) becomes two words, of which CLI11 takes an empty one. An empty
// word as value, which an unset variable of a shell makes, is the same error: to the checks that
// follow it would be a flag that was not given.
absl::StatusOr<std::vector<std::string>> WithEmptyValues(const Parser& p,
                                                         const std::vector<std::string>& args) {
  constexpr char kMayBeEmpty[] = "--append";
  std::vector<std::string> words;
  bool is_value = false;  // of the word before, written with a space
  const CLI::App* verb = &p.app;
  for (const std::string& word : args) {
    const CLI::App* next = is_value ? nullptr : Subcommand(*verb, word);
    if (next != nullptr) verb = next;
    if (is_value && word.empty() && words.back() != kMayBeEmpty) {
      return FlagError(words.back(), "its value is empty; give one, or leave the flag out");
    }
    const bool empty = !is_value && word.size() > 3 && word.rfind("--", 0) == 0 &&
                       word.find('=') == word.size() - 1;
    const std::string name = empty ? word.substr(0, word.size() - 1) : word;
    const CLI::Option* option = is_value ? nullptr : verb->get_option_no_throw(name);
    if (option == nullptr && !is_value) option = FindOption(p.app, name);
    is_value = !empty && option != nullptr && option->get_expected_min() > 0;
    if (!empty || option == nullptr) {  // CLI11 tells of a flag that nobody knows
      words.push_back(word);
      continue;
    }
    if (name != kMayBeEmpty) {
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
  // Of most flags the last one counts, so that a script's can be overridden. This one reads as if
  // each did.
  const CLI::Option* const fault = verb->get_option_no_throw("--fault");
  if (fault != nullptr && fault->count() > 1) {
    return FlagError("--fault", "stands twice, and a run has one fault; leave one out");
  }
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
    RETURN_IF_ERROR(CheckBenchWhat(p));
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
  for (const RcuVerb& each : RcuVerbs()) {
    if (verb->get_parent() != p.rcu || verb->get_name() != each.name) continue;
    line.verb = each.verb;
    RETURN_IF_ERROR(CheckServices(p, each.use, line));
  }
  if (verb == p.compare_app) {
    line.verb = Verb::kCompare;
    if (line.checked.config.scenario >= abi::Scenario::kHotplug) {
      return FlagError("--scenario",
                       absl::StrCat(p.flags.scenario,
                                    " begins where bring-up, which this command "
                                    "times, has ended; leave it out, or use sipi run"));
    }
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

// Before a help is printed: a command that does not exist has none.
absl::Status CheckCommandOfHelp(const Parser& p) {
  for (const CLI::App* app :
       {static_cast<const CLI::App*>(&p.app), static_cast<const CLI::App*>(p.rcu)}) {
    const bool here = app == &p.app ? p.app.get_subcommands().empty() : p.rcu->parsed();
    if (!here || !app->get_subcommands().empty()) continue;
    for (const std::string& word : app->remaining()) {
      if (word.rfind('-', 0) == 0) continue;
      return UnknownName(app == &p.app ? "command" : "rcu", word, CommandNames(*app));
    }
  }
  return p.bench_what.empty() ? absl::OkStatus() : CheckBenchWhat(p);
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
    } catch (const CLI::CallForVersion& version) {
      CommandLine line;
      line.help = absl::StrCat(version.what(), "\n");
      return line;
    } catch (const CLI::CallForHelp&) {
      RETURN_IF_ERROR(CheckCommandOfHelp(parser));
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
