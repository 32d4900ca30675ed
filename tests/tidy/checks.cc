#include "tests/tidy/checks.h"

#include <algorithm>
#include <cstddef>
#include <regex>
#include <utility>

namespace sipi::tidy {
namespace {

constexpr size_t kMaxColumns = 100;
constexpr size_t kMaxFileLines = 400;
constexpr size_t kMaxFunctionLines = 70;

bool StartsWith(const std::string& text, const std::string& prefix) {
  return text.compare(0, prefix.size(), prefix) == 0;
}

bool EndsWith(const std::string& text, const std::string& suffix) {
  return text.size() >= suffix.size() &&
         text.compare(text.size() - suffix.size(), suffix.size(), suffix) == 0;
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string At(const SourceFile& file, size_t index, const std::string& what) {
  return file.path + ":" + std::to_string(index + 1) + ": " + what;
}

size_t CodePoints(const std::string& line) {
  return static_cast<size_t>(std::count_if(line.begin(), line.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;  // all but continuation bytes
  }));
}

// Findings for every line that `pattern` matches, comments left out.
Findings Matches(const SourceFile& file, const std::regex& pattern, const std::string& what) {
  Findings findings;
  for (size_t i = 0; i < file.lines.size(); ++i) {
    const std::string code = file.lines[i].substr(0, file.lines[i].find("//"));
    if (std::regex_search(code, pattern)) findings.push_back(At(file, i, what));
  }
  return findings;
}

struct IncludeRule {
  std::string folder;                // files below it
  std::vector<std::string> allowed;  // beginnings of what they may include of this tree
};

// docs/architecture.md, "Folders". The first rule that fits a file counts. vmm's folders are
// ordered: each includes those before it.
const std::vector<IncludeRule>& IncludeRules() {
  static const std::vector<IncludeRule> rules = {
      {"apic/regs/", {"apic/regs/"}},
      {"apic/", {"apic/"}},
      {"guest/sequence/", {"guest/sequence/", "apic/regs/"}},
      {"guest/abi/", {"guest/abi/", "guest/sequence/", "apic/regs/"}},
      {"guest/kernel/",
       {"guest/kernel/", "guest/platform/platform.h", "guest/scenario/scenario.h", "guest/abi/",
        "guest/sequence/", "apic/regs/"}},
      {"guest/scenario/",
       {"guest/scenario/", "guest/kernel/", "guest/platform/platform.h", "guest/abi/",
        "guest/sequence/", "apic/regs/"}},
      {"guest/platform/x86/", {"guest/", "apic/regs/", "platform_impl.h"}},
      // The simulator's public header shows nothing of the kernel: vmm includes it.
      {"guest/platform/sim/costs.h", {"guest/abi/"}},
      {"guest/platform/sim/chaos.h", {"guest/abi/"}},
      {"guest/platform/sim/choices.h", {"guest/abi/"}},
      {"guest/platform/sim/simulator.h",
       {"guest/platform/sim/costs.h", "guest/platform/sim/chaos.h", "guest/platform/sim/choices.h",
        "guest/abi/", "guest/sequence/", "apic/regs/"}},
      {"guest/platform/sim/", {"guest/", "apic/", "platform_impl.h"}},
      {"guest/platform/threads/", {"guest/", "apic/regs/", "platform_impl.h"}},
      {"guest/platform/builtin_atomics.h", {"guest/platform/atomic_word.h"}},
      {"guest/platform/", {"guest/abi/", "guest/sequence/", "apic/regs/", "platform_impl.h"}},
      {"vmm/base/", {"vmm/base/"}},
      {"vmm/timeline/",
       {"vmm/timeline/", "vmm/base/", "guest/abi/", "guest/sequence/", "apic/regs/"}},
      {"vmm/report/",
       {"vmm/report/", "vmm/timeline/", "vmm/base/", "guest/abi/", "guest/sequence/",
        "apic/regs/"}},
      {"vmm/",
       {"vmm/", "apic/", "guest/abi/", "guest/sequence/", "guest/platform/sim/simulator.h"}},
      {"bench/", {"bench/", "vmm/", "apic/", "guest/", "platform_impl.h"}},
      {"tests/", {"tests/", "bench/", "vmm/", "apic/", "guest/", "platform_impl.h", "canary.h"}},
  };
  return rules;
}

bool OfThisTree(const std::string& include) {
  static const std::vector<std::string> roots = {"apic/", "guest/", "vmm/", "bench/", "tests/"};
  return include.find('/') == std::string::npos ||
         std::any_of(roots.begin(), roots.end(),
                     [&](const std::string& root) { return StartsWith(include, root); });
}

bool BannedSystemHeader(const std::string& path, const std::string& header) {
  static const std::vector<std::string> no_host = {"thread", "mutex",  "condition_variable",
                                                   "chrono", "future", "iostream"};
  const bool pure = StartsWith(path, "apic/") || StartsWith(path, "guest/kernel/") ||
                    StartsWith(path, "guest/scenario/") || StartsWith(path, "guest/abi/") ||
                    StartsWith(path, "guest/sequence/");
  if (pure) {
    return std::find(no_host.begin(), no_host.end(), header) != no_host.end() ||
           StartsWith(header, "linux/") || StartsWith(header, "sys/");
  }
  // vmm/kvm is the only caller of KVM's ioctls; the progress line asks a terminal for its width.
  return header == "sys/ioctl.h" && StartsWith(path, "vmm/") && !StartsWith(path, "vmm/kvm/") &&
         path != "vmm/cli/progress.cc";
}

bool AllowedInTree(const std::string& path, const std::string& include) {
  for (const IncludeRule& rule : IncludeRules()) {
    if (!StartsWith(path, rule.folder)) continue;
    return std::any_of(rule.allowed.begin(), rule.allowed.end(), [&](const std::string& beginning) {
      return StartsWith(include, beginning);
    });
  }
  return true;
}

// The indentation of the function whose body opens at the end of line `i`: two less than its first
// statement's, since the opening line itself may be a continuation of the parameter list.
std::string IndentOfFunction(const std::vector<std::string>& lines, size_t i) {
  size_t first = i + 1;
  while (first < lines.size() && lines[first].empty()) ++first;
  if (first == lines.size()) return "";
  const size_t indent = lines[first].find_first_not_of(' ');
  return std::string(indent < 2 ? 0 : indent - 2, ' ');
}

bool OpensFunction(const std::string& line) {
  static const std::regex not_function(
      R"(^\s*(namespace|class|struct|enum|union|extern|if|for|while|switch|else|do|case|return|\}))"
      R"(|=\s*\{$)");
  return EndsWith(line, " {") && !std::regex_search(line, not_function);
}

}  // namespace

Findings CheckColumns(const SourceFile& file) {
  Findings findings;
  for (size_t i = 0; i < file.lines.size(); ++i) {
    const size_t columns = CodePoints(file.lines[i]);
    if (columns > kMaxColumns) {
      findings.push_back(At(file, i, std::to_string(columns) + " columns, at most 100"));
    }
  }
  return findings;
}

Findings CheckFileLength(const SourceFile& file) {
  if (file.lines.size() <= kMaxFileLines) return {};
  return {file.path + ": " + std::to_string(file.lines.size()) +
          " lines, at most 400; split it by concept"};
}

Findings CheckFunctionLength(const SourceFile& file) {
  Findings findings;
  for (size_t i = 0; i < file.lines.size(); ++i) {
    if (!OpensFunction(file.lines[i])) continue;
    const std::string indent = IndentOfFunction(file.lines, i);
    size_t end = i + 1;
    size_t labels = 0;  // a switch that maps values to names is a table, however long
    for (; end < file.lines.size() && !StartsWith(file.lines[end], indent + "}"); ++end) {
      if (file.lines[end].find("  case ") != std::string::npos) ++labels;
    }
    if (end - i - labels > kMaxFunctionLines) {
      findings.push_back(
          At(file, i, "a body of " + std::to_string(end - i) + " lines, at most 70"));
    }
  }
  return findings;
}

Findings CheckIncludes(const SourceFile& file) {
  static const std::regex include_line(R"(^\s*#\s*include\s*([<"])([^>"]+)[>"])");
  Findings findings;
  for (size_t i = 0; i < file.lines.size(); ++i) {
    std::smatch match;
    if (!std::regex_search(file.lines[i], match, include_line)) continue;
    const std::string header = match[2];
    const bool quoted = match[1] == "\"";
    if (quoted && OfThisTree(header) && !AllowedInTree(file.path, header)) {
      findings.push_back(At(file, i, "must not include " + header));
    }
    if (quoted && !OfThisTree(header) && StartsWith(file.path, "apic/")) {
      findings.push_back(At(file, i, "apic uses the standard library only, not " + header));
    }
    if (!quoted && BannedSystemHeader(file.path, header)) {
      findings.push_back(At(file, i, "must not include <" + header + "> here"));
    }
  }
  return findings;
}

Findings CheckWaits(const SourceFile& file) {
  if (!StartsWith(file.path, "guest/kernel/") && !StartsWith(file.path, "guest/scenario/"))
    return {};
  static const std::regex pause(R"(\bPause\s*\(|_pause\b|"pause|\basm\b|__builtin_ia32)");
  return Matches(file, pause, "no bare pause and no assembly here: wait with SpinUntil or Halt");
}

Findings CheckDeterminism(const SourceFile& file) {
  if (!StartsWith(file.path, "guest/platform/sim/")) return {};
  static const std::regex chance(
      R"(\b(float|double|unordered_\w+|std::hash|std::random\w*|rand|srand|time|clock_gettime)\b)"
      R"(|\b(thread_local|__rdtsc)\b)"
      R"(|include <(chrono|random|ctime|thread|unordered_map|unordered_set|cmath)>)");
  return Matches(file, chance, "the simulator gives the same bytes everywhere: no such thing here");
}

Findings CheckConditionals(const SourceFile& file) {
  const bool guest = StartsWith(file.path, "guest/") && !EndsWith(file.path, ".S");
  static const std::regex any(R"(^\s*#\s*(if|ifdef|ifndef)\b)");
  static const std::regex platform(
      R"(^\s*#\s*(if|ifdef|ifndef)\b.*(SIM|HOSTED|PLATFORM|FREESTANDING|__x86_64|_WIN32|__linux))");
  Findings findings =
      Matches(file, guest ? any : platform, "the build picks the platform, not the preprocessor");
  if (file.path == "tests/support/sanitized.h" || StartsWith(file.path, "tests/tidy/")) {
    return findings;
  }
  static const std::regex sanitizer(R"(__SANITIZE_|__has_feature)");
  const Findings more = Matches(file, sanitizer,
                                "ask meson's b_sanitize, or tests/support/sanitized.h: g++'s "
                                "macros and clang's features are not each other's");
  findings.insert(findings.end(), more.begin(), more.end());
  return findings;
}

Findings CheckLeftovers(const SourceFile& file) {
  // Written in halves, so that this file passes its own rule.
  static const std::regex leftover(std::string("\\b(TO") + "DO|FIX" + "ME|XX" + "X)\\b");
  Findings findings;
  for (size_t i = 0; i < file.lines.size(); ++i) {
    if (std::regex_search(file.lines[i], leftover)) {
      findings.push_back(At(file, i, "left for later: do it, or file an issue"));
    }
  }
  return findings;
}

Findings CheckFormats(const SourceFile& file, const std::string& formats_text) {
  const bool writes_json = StartsWith(file.path, "vmm/report/");
  const bool counts = StartsWith(file.path, "vmm/machine/") || StartsWith(file.path, "vmm/vcpu/");
  if (!writes_json && !counts) return {};
  // The first argument of what writes a key, and the names in a table of fields.
  static const std::regex key_call(
      R"(\b(?:Field|Key|Write(?:Numbers|Waits|Figures|Phases))\((?:json, )?[^,)]*)");
  static const std::regex table_row(R"(\{("[a-z][a-z0-9_]*"), )");
  static const std::regex counter(

      R"(counters\[("[^"]*")\]|\{("[^"]*"), stats\.|return ("exits[^"]*"))");
  static const std::regex name(R"RE("([a-z][a-z0-9_.]*)")RE");
  std::string text;
  for (const std::string& line : file.lines) text += line.substr(0, line.find("//")) + "\n";
  Findings findings;
  const auto look = [&](const std::regex& pattern) {
    for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it) {
      const std::string found = it->str();
      for (std::sregex_iterator n(found.begin(), found.end(), name); n != end; ++n) {
        const std::string word = (*n)[1];
        const bool known = Contains(formats_text, "`" + word + "`") ||
                           (StartsWith(word, "exits.") && Contains(formats_text, "`exits.*`"));
        if (!known) findings.push_back(file.path + ": `" + word + "` is not in docs/formats.md");
      }
    }
  };
  if (writes_json) look(key_call);
  if (writes_json && Contains(text, "JsonWriter")) look(table_row);
  if (counts) look(counter);
  return findings;
}

Findings CheckHeader(const SourceFile& file) {
  if (!EndsWith(file.path, ".h")) return {};
  const bool protected_once =
      std::find(file.lines.begin(), file.lines.end(), "#pragma once") != file.lines.end();
  return protected_once ? Findings{} : Findings{file.path + ": #pragma once is missing"};
}

Findings CheckBuilt(const SourceFile& file, const std::string& meson_text) {
  if (!EndsWith(file.path, ".cc")) return {};
  const std::string name = file.path.substr(file.path.rfind('/') + 1);
  for (size_t at = meson_text.find(name); at != std::string::npos;
       at = meson_text.find(name, at + 1)) {
    const char before = at == 0 ? '\'' : meson_text[at - 1];
    if ((before == '\'' || before == '/') && meson_text.substr(at + name.size(), 1) == "'")
      return {};
  }
  return {file.path + ": no meson.build names it: build it or remove it"};
}

}  // namespace sipi::tidy
