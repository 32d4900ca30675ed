// The subcommands. Each prints what it has to say and returns the process's exit status
// (docs/formats.md).
#pragma once

#include <cstdint>
#include <string>

#include "vmm/cli/command_line.h"

namespace sipi {

int RunCommand(const CommandLine& line);
int CompareCommand(const CommandLine& line);
int SmtCommand(const CommandLine& line);
int RcuScaleCommand(const CommandLine& line);
int RcuRefCommand(const CommandLine& line);
int RcuCallRcuCommand(const CommandLine& line);
int RcuTortureCommand(const CommandLine& line);
int ParamsCommand(const CommandLine& line);
int PublishedCommand(const CommandLine& line);
int ExhaustiveCommand(const ExhaustiveFlags& flags, bool quiet);
int ExploreCommand(const ExploreFlags& flags);
int DoctorCommand(const std::string& kvm_device);

}  // namespace sipi
