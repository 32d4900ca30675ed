#include "guest/platform/sim/simulator.h"

#include <algorithm>
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
  for (uint64_t* address : {&params.heap_gpa, &params.torture_gpa}) {
    if (*address != 0) *address += reinterpret_cast<uint64_t>(base);
  }
}

// Zeroes what a machine may have written: its kernel, the areas that it shares with the VMM, and of
// its heap, which is large, what was handed out.
void ClearTraces(Memory& memory, uint64_t arena_end) {
  const auto& kernel = *reinterpret_cast<const Kernel*>(memory.base() + abi::kImageGpa);
  const auto& params = *reinterpret_cast<const abi::BootParams*>(memory.base() + abi::kParamsGpa);
  if (params.heap_gpa != 0) {
    const uint64_t heap = memory.OffsetOf(reinterpret_cast<const void*>(params.heap_gpa));
    // Read as memory: no CPU runs that could pay for an access.
    const uint64_t used =
        std::min(*reinterpret_cast<const uint64_t*>(&kernel.heap_used), params.heap_bytes);
    memory.Clear(heap, heap + used);
    arena_end = heap;
  }
  memory.Clear(abi::kArenaGpa, arena_end);
  memory.Clear(abi::kImageGpa, abi::kImageGpa + sizeof(Kernel));
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
    ClearTraces(backing->memory, machine_->options().memory_bytes);
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
std::span<const abi::TraceRecord> Simulator::spare_records(CpuNumber cpu) const {
  return machine_->cpu(cpu.value).spare_records;
}
bool Simulator::Harmed(CpuNumber cpu) const { return machine_->cpu(cpu.value).harmed; }
std::span<const ChoicePoint> Simulator::choice_points() const { return machine_->choice_points(); }
const Stats& Simulator::stats() const { return machine_->stats(); }
uint64_t Simulator::now_ns() const { return machine_->now_ns(); }
std::string Simulator::Doing(CpuNumber cpu) const { return machine_->Doing(cpu.value); }

}  // namespace sipi::sim
