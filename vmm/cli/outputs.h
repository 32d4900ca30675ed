// The files that a command was asked to write: whether they can be, before a long run; and writing.
#pragma once

#include <string>

#include "vmm/cli/raw_flags.h"

namespace sipi {

// No two outputs go to one place, and each can be written. What is wrong has been said.
bool OutputsWritable(const RawFlags& flags);

// Writes `content` to what `flag` named; nothing if `path` is empty. False: it has been said.
bool WriteOutput(const std::string& path, const std::string& content, const char* flag);

}  // namespace sipi
