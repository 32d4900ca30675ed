#include "guest/platform/sim/simulator.h"

#include <cstring>
#include <utility>

#include "guest/platform/sim/kernel_program.h"
#include "guest/platform/sim/machine.h"

namespace sipi::sim {

std::unique_ptr<Simulator> Simulator::Create(Options options, std::string* error) {
  auto machine = std::make_unique<Machine>(std::move(options), kKernelProgram);
  if (!machine->Reserve(error)) return nullptr;
  std::byte* const base = machine->memory().base();
  const std::vector<std::byte>& blob = machine->options().boot_params;
  std::memcpy(base + abi::kParamsGpa, blob.data(), blob.size());
  auto& params = *reinterpret_cast<abi::BootParams*>(base + abi::kParamsGpa);
  for (uint64_t* address :
       {&params.result_gpa, &params.slots_gpa, &params.percpu_gpa, &params.boot_ring_gpa}) {
    *address += reinterpret_cast<uint64_t>(base);
  }
  return std::unique_ptr<Simulator>(new Simulator(std::move(machine)));
}

Simulator::Simulator(std::unique_ptr<Machine> machine) : machine_(std::move(machine)) {}
Simulator::~Simulator() = default;

End Simulator::Run() { return machine_->Run(); }
std::byte* Simulator::base() const { return machine_->memory().base(); }
std::span<const HostRecord> Simulator::host_records() const { return machine_->host_records(); }
const Stats& Simulator::stats() const { return machine_->stats(); }
uint64_t Simulator::now_ns() const { return machine_->now_ns(); }
std::string Simulator::Doing(CpuNumber cpu) const { return machine_->Doing(cpu.value); }

}  // namespace sipi::sim
