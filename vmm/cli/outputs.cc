#include "vmm/cli/outputs.h"

#include <filesystem>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "vmm/cli/messages.h"
#include "vmm/report/file_writer.h"

namespace sipi {
namespace {

// The same file under whatever spelling. "-" and "none" are themselves.
bool SameFile(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return false;
  if (a == b) return true;
  if (a == "-" || b == "-") return false;
  std::error_code error;
  return std::filesystem::weakly_canonical(a, error) == std::filesystem::weakly_canonical(b, error);
}

// No two outputs go to one place. A payload writes to standard output unless it is told not to;
// sipi's own guest is silent there but for what a scenario prints.
absl::Status CheckOutputsDiffer(const RawFlags& flags) {
  const std::string serial = flags.serial.empty() && !flags.payload.empty() ? "-" : flags.serial;
  const std::tuple<const char*, const char*, bool> pairs[] = {
      {"--json", "--trace", SameFile(flags.json, flags.trace)},
      {"--json", "--serial", SameFile(flags.json, serial)},
      {"--trace", "--serial", SameFile(flags.trace, serial)},
      {"--html", "--json", SameFile(flags.html, flags.json)},
      {"--html", "--trace", SameFile(flags.html, flags.trace)},
      {"--html", "--serial", SameFile(flags.html, serial)},
  };
  for (const auto& [first, second, same] : pairs) {
    if (!same) continue;
    const std::string& path = std::string_view(first) == "--json"    ? flags.json
                              : std::string_view(first) == "--trace" ? flags.trace
                                                                     : flags.html;
    const bool by_default = flags.serial.empty() && std::string_view(second) == "--serial";
    return absl::InvalidArgumentError(
        absl::StrCat(first, " and ", second, by_default ? " (the payload's, by default)" : "",
                     " both name ", path, "; give each its own file"));
  }
  return absl::OkStatus();
}

}  // namespace

bool OutputsWritable(const RawFlags& flags) {
  if (const absl::Status differ = CheckOutputsDiffer(flags); !differ.ok()) {
    Say(differ);
    return false;
  }
  for (const auto& [path, flag] :
       {std::pair(&flags.json, "--json"), std::pair(&flags.trace, "--trace"),
        std::pair(&flags.html, "--html")}) {
    if (path->empty()) continue;
    const absl::Status writable = CheckResultFile(*path, flag);
    if (writable.ok()) continue;
    Say(writable);
    return false;
  }
  return true;
}

bool WriteOutput(const std::string& path, const std::string& content, const char* flag) {
  if (path.empty()) return true;
  const absl::Status written = WriteResultFile(path, content, flag);
  if (!written.ok()) Say(written);
  return written.ok();
}

}  // namespace sipi
