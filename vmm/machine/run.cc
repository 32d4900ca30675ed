#include "vmm/machine/run.h"

#include <memory>
#include <utility>

#include "vmm/base/status_macros.h"
#include "vmm/device/output_stage.h"
#include "vmm/load/params.h"
#include "vmm/machine/config_check.h"
#include "vmm/machine/guest_image.h"
#include "vmm/machine/machine.h"
#include "vmm/machine/payload_guest.h"
#include "vmm/machine/payload_record.h"
#include "vmm/machine/record_builder.h"
#include "vmm/machine/simulated_run.h"

namespace sipi {
namespace {

MachineOptions OptionsOf(const RunConfig& config) {
  MachineOptions options;
  options.topology = config.topology;
  options.irqchip = config.irqchip;
  options.apic_mode = config.apic_mode;
  options.hidden = config.hidden;
  options.driver = config.driver;
  options.profile = config.profile;
  options.fault = config.fault;
  options.firmware_lies = config.firmware_lies;
  options.seed = config.seed;
  options.serial_fd = config.serial_fd;
  options.kvm_device = config.kvm_device;
  options.kvm_icr = config.kvm_icr;
  options.startups_per_cpu = StartupsPerCpu(config);
  return options;
}

absl::StatusOr<RunRecord> RunPayload(const RunConfig& config, StopRequest& stop) {
  ASSIGN_OR_RETURN(PreparedPayload payload, PreparePayload(config));
  const PayloadKind kind = payload.loaded.kind;
  MachineOptions options = OptionsOf(config);
  options.board = BoardOptions{.ram_bytes = payload.memory.size_bytes()};
  ASSIGN_OR_RETURN(const std::unique_ptr<Machine> machine, Machine::Create(std::move(options)));
  RETURN_IF_ERROR(InstallPayload(std::move(payload), *machine));
  if (config.empty_serial_file) RETURN_IF_ERROR(EmptyFile(config.serial_fd));
  const RunEnd end = machine->Run(stop, config.time_limit_ms);
  if (end.kind == EndKind::kHostError) return end.error;
  return BuildPayloadRecord(config, kind, end, *machine);
}

}  // namespace

absl::StatusOr<RunRecord> RunMachine(const RunConfig& config, StopRequest& stop) {
  RETURN_IF_ERROR(CheckConfig(config));
  if (config.machine == MachineKind::kSim) return RunSimulated(config, stop);
  if (config.payload) return RunPayload(config, stop);
  ASSIGN_OR_RETURN(const std::unique_ptr<Machine> machine, Machine::Create(OptionsOf(config)));
  ASSIGN_OR_RETURN(const ArenaLayout arena, LoadGuest(config, *machine));
  if (config.driver == abi::Driver::kHost) {
    ASSIGN_OR_RETURN(HostSequence sequence, SequenceFor(config, arena, machine->memory()));
    machine->SetSequence(std::move(sequence));
  }
  if (config.empty_serial_file) RETURN_IF_ERROR(EmptyFile(config.serial_fd));
  const RunEnd end = machine->Run(stop, config.time_limit_ms);
  if (end.kind == EndKind::kHostError) return end.error;
  return BuildRecord(config, arena, end, *machine);
}

}  // namespace sipi
