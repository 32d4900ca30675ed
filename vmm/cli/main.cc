// The `sipi` command.
#include <exception>
#include <string>
#include <vector>

#include "vmm/base/exit_codes.h"
#include "vmm/cli/command_line.h"
#include "vmm/cli/commands.h"
#include "vmm/cli/kvm_access.h"
#include "vmm/cli/messages.h"
#include "vmm/cli/process_setup.h"

namespace {

int Dispatch(const sipi::CommandLine& line) {
  switch (line.verb) {
    case sipi::Verb::kHelp:
      return sipi::Print(line.help) ? 0 : static_cast<int>(sipi::ExitCode::kError);
    case sipi::Verb::kRun:
      return sipi::RunCommand(line);
    case sipi::Verb::kCompare:
      return sipi::CompareCommand(line);
    case sipi::Verb::kDoctor:
      return sipi::DoctorCommand(line.flags.kvm_device);
    case sipi::Verb::kPublished:
      return sipi::PublishedCommand(line);
    case sipi::Verb::kExplore:
      return sipi::ExploreCommand(line.explore);
    case sipi::Verb::kSmt:
      return sipi::SmtCommand(line);
    case sipi::Verb::kRcuScale:
      return sipi::RcuScaleCommand(line);
    case sipi::Verb::kRcuRef:
      return sipi::RcuRefCommand(line);
    case sipi::Verb::kRcuCallRcu:
      return sipi::RcuCallRcuCommand(line);
    case sipi::Verb::kRcuTorture:
      return sipi::RcuTortureCommand(line);
    case sipi::Verb::kParams:
      return sipi::ParamsCommand(line);
  }
  return static_cast<int>(sipi::ExitCode::kError);
}

}  // namespace

int main(int argc, char** argv) {
  // Nothing of ours throws; out of memory and the like end as one line, not as an abort.
  try {
    sipi::ReserveStandardStreams();
    sipi::IgnoreSigPipe();
    const std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
    const absl::StatusOr<sipi::CommandLine> line =
        sipi::ParseCommandLine(args, sipi::HostCpuLimits);
    if (!line.ok()) {
      sipi::Say(line.status());
      return static_cast<int>(sipi::ExitCode::kUsage);
    }
    return Dispatch(*line);
  } catch (const std::exception& error) {
    sipi::Say(std::string("unexpected: ") + error.what());
    return static_cast<int>(sipi::ExitCode::kError);
  }
}
