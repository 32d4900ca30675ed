#include "vmm/cli/outputs.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "vmm/base/status_macros.h"
#include "vmm/cli/messages.h"
#include "vmm/profile/profile.h"
#include "vmm/report/file_writer.h"

namespace sipi {
namespace {

constexpr char kOrderFile[] = "file:";

std::string Canonical(const std::string& path) {
  if (path == "/dev/stdout") return "-";
  if (path == "-") return path;
  std::error_code error;
  namespace fs = std::filesystem;
  const fs::path canonical = fs::weakly_canonical(fs::absolute(path, error), error);
  return error ? path : canonical.string();
}

bool IsFile(const std::string& path, struct stat& status) {
  const int failed = path == "-" ? fstat(STDOUT_FILENO, &status) : stat(path.c_str(), &status);
  return failed == 0 && S_ISREG(status.st_mode);
}

// The same place under whatever spelling; for a file also under another link, or as standard
// output.
bool SamePlace(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return false;
  const std::string first = Canonical(a);
  const std::string second = Canonical(b);
  if (first == second) return true;
  struct stat first_status;
  struct stat second_status;
  return IsFile(first, first_status) && IsFile(second, second_status) &&
         first_status.st_dev == second_status.st_dev && first_status.st_ino == second_status.st_ino;
}

// Where the guest's serial output goes. A payload writes to standard output unless it is told not
// to; sipi's own guest is silent there but for what a scenario prints.
NamedFile SerialOf(const RawFlags& flags) {
  if (flags.serial == "none") return {"--serial", ""};
  if (!flags.serial.empty() || flags.payload.empty()) return {"--serial", flags.serial};
  return {"--serial", "-", " (the payload's, by default)"};
}

absl::Status CheckOutputs(const RawFlags& flags) {
  const std::vector<NamedFile> written = {
      {"--json", flags.json}, {"--trace", flags.trace}, {"--html", flags.html}};
  std::vector<NamedFile> outputs = written;
  outputs.push_back(SerialOf(flags));
  RETURN_IF_ERROR(CheckFilesApart(outputs, InputsOf(flags)));
  for (const NamedFile& output : written) {
    if (!output.path.empty()) RETURN_IF_ERROR(CheckResultFile(output.path, output.flag));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckFilesApart(const std::vector<NamedFile>& outputs,
                             const std::vector<NamedFile>& inputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    for (size_t j = i + 1; j < outputs.size(); ++j) {
      if (!SamePlace(outputs[i].path, outputs[j].path)) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          outputs[i].flag, outputs[i].remark, " and ", outputs[j].flag, outputs[j].remark,
          " both name ", outputs[i].path, "; give each its own file"));
    }
    for (const NamedFile& input : inputs) {
      if (!SamePlace(outputs[i].path, input.path)) continue;
      return absl::InvalidArgumentError(absl::StrCat(outputs[i].flag, outputs[i].remark,
                                                     " would overwrite ", input.path, ", which ",
                                                     input.flag, " reads; give it another file"));
    }
  }
  return absl::OkStatus();
}

std::vector<NamedFile> InputsOf(const RawFlags& flags) {
  std::vector<NamedFile> inputs = {{"--payload", flags.payload}};
  const std::vector<std::string> builtin = BuiltinProfileNames();
  if (std::find(builtin.begin(), builtin.end(), flags.profile) == builtin.end()) {
    inputs.push_back({"--profile", flags.profile});
  }
  absl::string_view order = flags.order;
  if (absl::ConsumePrefix(&order, kOrderFile)) inputs.push_back({"--order", std::string(order)});
  return inputs;
}

bool OutputsWritable(const RawFlags& flags) {
  const absl::Status writable = CheckOutputs(flags);
  if (!writable.ok()) Say(writable);
  return writable.ok();
}

bool WriteOutput(const std::string& path, const std::string& content, const char* flag) {
  if (path.empty()) return true;
  const absl::Status written = WriteResultFile(path, content, flag);
  if (!written.ok()) Say(written);
  return written.ok();
}

}  // namespace sipi
