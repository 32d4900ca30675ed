#include "guest/platform/sim/simulator.h"

#include <cstring>
#include <utility>

#include "guest/platform/sim/kernel_program.h"
#include "guest/platform/sim/machine.h"

namespace sipi::sim {

namespace {

// Puts the boot parameters in place, with the addresses as they are in this process.
void Load(Machine& machine) {
  std::byte* const base = machine.memory().base();
  const std::vector<std::byte>& blob = machine.options().boot_params;
  std::memcpy(base + abi::kParamsGpa, blob.data(), blob.size());
  auto& params = *reinterpret_cast<abi::BootParams*>(base + abi::kParamsGpa);
  for (uint64_t* address :
       {&params.result_gpa, &params.slots_gpa, &params.percpu_gpa, &params.boot_ring_gpa}) {
    *address += reinterpret_cast<uint64_t>(base);
  }
}

}  // namespace

std::unique_ptr<Simulator> Simulator::Create(Options options, std::string* error) {
  auto machine = std::make_unique<Machine>(std::move(options), kKernelProgram);
  if (!machine->Reserve(error)) return nullptr;
  Load(*machine);
  return std::unique_ptr<Simulator>(new Simulator(std::move(machine)));
}

bool Simulator::Reset(Options options, std::string* error) {
  std::unique_ptr<Backing> backing = machine_->TakeBacking();
  if (options.memory_bytes > backing->memory.bytes() ||
      options.cpus.size() > backing->stacks.size()) {
    backing = nullptr;
  } else {
    Memory& memory = backing->memory;
    memory.Clear(abi::kImageGpa, abi::kImageGpa + sizeof(Kernel));
    memory.Clear(abi::kArenaGpa, options.memory_bytes);
  }
  machine_ = std::make_unique<Machine>(std::move(options), kKernelProgram, std::move(backing));
  if (!machine_->Reserve(error)) return false;
  Load(*machine_);
  return true;
}

Simulator::Simulator(std::unique_ptr<Machine> machine) : machine_(std::move(machine)) {}
Simulator::~Simulator() = default;

End Simulator::Run() { return machine_->Run(); }
std::byte* Simulator::base() const { return machine_->memory().base(); }
std::span<const HostRecord> Simulator::host_records() const { return machine_->host_records(); }
bool Simulator::Harmed(CpuNumber cpu) const { return machine_->cpu(cpu.value).harmed; }
std::span<const ChoicePoint> Simulator::choice_points() const { return machine_->choice_points(); }
const Stats& Simulator::stats() const { return machine_->stats(); }
uint64_t Simulator::now_ns() const { return machine_->now_ns(); }
std::string Simulator::Doing(CpuNumber cpu) const { return machine_->Doing(cpu.value); }

}  // namespace sipi::sim
