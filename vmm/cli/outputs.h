// The files that a command was asked to write: whether they can be, before a long run; and writing.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "vmm/cli/raw_flags.h"

namespace sipi {

// A file as a flag names it. "-" is standard output; nothing is named if `path` is empty.
struct NamedFile {
  const char* flag;
  std::string path;
  const char* remark = "";  // behind the flag in errors
};

// No two outputs go to one place, and none goes over what the command reads, under whatever
// spelling or link. Errors: InvalidArgument naming both flags and the file.
absl::Status CheckFilesApart(const std::vector<NamedFile>& outputs,
                             const std::vector<NamedFile>& inputs);

// The files that these flags read: payload, profile, order.
std::vector<NamedFile> InputsOf(const RawFlags& flags);

// --json, --trace, --html and --serial: no two go to one place or over an input, and each can be
// written. What is wrong has been said. Changes nothing.
bool OutputsWritable(const RawFlags& flags);

// Writes `content` to what `flag` named; nothing if `path` is empty. False: it has been said.
bool WriteOutput(const std::string& path, const std::string& content, const char* flag);

}  // namespace sipi
