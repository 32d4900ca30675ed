#include "tests/kernel/kernel_machine.h"

#include <bit>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "guest/abi/scenario_results.h"
#include "guest/kernel/sched/run_queue.h"
#include "guest/platform/sim/kernel_program.h"
#include "tests/support/sanitized.h"

namespace sipi {
namespace {

constexpr uint64_t kPageBytes = 4096;

// Under sanitizers every fourth seed, which still goes round all kinds of schedules (ChaosOf).
constexpr uint64_t kSeedStep = kSanitized ? 4 : 1;

uint64_t RoundUp(uint64_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes; }

// Where things lie from abi::kArenaGpa on.
struct Layout {
  uint64_t result, slots, boot_ring, percpu, torture, heap, end;
  uint32_t stride;
};

Layout LayoutOf(const KernelOptions& options) {
  Layout layout{};
  uint64_t next = abi::kArenaGpa;
  const auto take = [&next](uint64_t bytes) { return std::exchange(next, next + RoundUp(bytes)); };
  const uint64_t ring = options.ring_records * sizeof(abi::TraceRecord);
  layout.stride = static_cast<uint32_t>(kPerCpuRingOffset + ring + 64);
  layout.result = take(sizeof(abi::ResultPage));
  layout.slots = take(options.cpus * sizeof(abi::CpuSlot));
  layout.boot_ring = take(ring);
  layout.percpu = take(uint64_t{options.cpus} * layout.stride);
  layout.torture = take(sizeof(abi::TorturePage));
  layout.heap = take(options.heap_bytes);
  layout.end = next;
  return layout;
}

sim::Options MachineOptions(const KernelOptions& options) {
  sim::Options machine;
  for (uint32_t i = 0; i < options.cpus; ++i) {
    sim::CpuPlace place;
    place.apic_id = ApicId(i);
    machine.cpus.push_back(place);
  }
  machine.seed = options.seed;
  machine.chaos = options.chaos;
  machine.choices = options.choices;
  machine.time_limit_ns = options.time_limit_ns;
  machine.memory_bytes = LayoutOf(options).end;
  return machine;
}

void SetArena(const KernelOptions& options, std::byte* base, abi::BootParams& params) {
  const Layout layout = LayoutOf(options);
  const auto at = [base](uint64_t gpa) { return reinterpret_cast<uint64_t>(base + gpa); };
  params.percpu_stride_bytes = layout.stride;
  params.percpu_ring_records = options.ring_records;
  params.boot_ring_records = options.ring_records;
  params.result_gpa = at(layout.result);
  params.slots_gpa = at(layout.slots);
  params.percpu_gpa = at(layout.percpu);
  params.boot_ring_gpa = at(layout.boot_ring);
  params.heap_gpa = at(layout.heap);
  params.heap_bytes = options.heap_bytes;
  params.torture_gpa = at(layout.torture);
}

// Behind the parameters: CPU table, order, hash of the APIC IDs, which are the CPUs' numbers.
void PutTables(const KernelOptions& options, abi::BootParams& params) {
  auto* const blob = reinterpret_cast<std::byte*>(&params);
  uint32_t next = sizeof(abi::BootParams);
  const auto take = [&next](uint64_t bytes) {
    return std::exchange(next, static_cast<uint32_t>(next + (bytes + 7) / 8 * 8));
  };
  params.cpu_count = options.cpus;
  params.cpu_table_offset = take(options.cpus * sizeof(abi::CpuEntry));
  params.order_offset = take(options.cpus * sizeof(uint32_t));
  params.apic_hash_bits = static_cast<uint32_t>(std::bit_width(2 * options.cpus - 1));
  const uint32_t slots = 1u << params.apic_hash_bits;
  params.apic_hash_offset = take(slots * sizeof(abi::ApicHashEntry));
  params.size_bytes = next;
  auto* const cpus = reinterpret_cast<abi::CpuEntry*>(blob + params.cpu_table_offset);
  auto* const order = reinterpret_cast<uint32_t*>(blob + params.order_offset);
  auto* const hash = reinterpret_cast<abi::ApicHashEntry*>(blob + params.apic_hash_offset);
  for (uint32_t i = 0; i < slots; ++i) hash[i] = {0, abi::kNoCpu};
  for (uint32_t cpu = 0; cpu < options.cpus; ++cpu) {
    cpus[cpu].apic_id = cpu;
    cpus[cpu].core = static_cast<uint16_t>(cpu / options.threads_per_core);
    cpus[cpu].thread = static_cast<uint8_t>(cpu % options.threads_per_core);
    if (options.cpus_per_node != 0) {
      cpus[cpu].node = static_cast<uint16_t>(cpu / options.cpus_per_node);
    }
    const bool wanted = options.smt || cpus[cpu].thread == 0;
    if (cpu != 0 && wanted) order[params.order_count++] = cpu;
    uint32_t slot = (cpu * abi::kApicHashMultiplier) >> (32 - params.apic_hash_bits);
    while (hash[slot].cpu != abi::kNoCpu) slot = (slot + 1) % slots;
    hash[slot] = {cpu, cpu};
  }
}

// Read as memory: no CPU runs that could pay for an access.
template <class T>
T Peek(const platform::Atomic<T>& word) {
  return *reinterpret_cast<const T*>(&word);
}

// The youngest threads, and what each does.
std::string Threads(const Kernel& kernel) {
  constexpr const char* kStates[] = {"runnable", "blocked", "dead", "waking"};
  if (kernel.scheduler == nullptr) return "";
  std::string text;
  auto* thread = reinterpret_cast<const Thread*>(Peek(kernel.scheduler->last_thread));
  for (int i = 0; i < 40 && thread != nullptr; ++i, thread = thread->older) {
    if (thread->priority == Priority::kIdle) continue;
    text += std::string("\n  ") + thread->name + ": " + kStates[Peek(thread->state) % 4] +
            " on CPU " + std::to_string(Peek(thread->cpu)) +
            (thread->on_queue != 0 ? ", queued" : "") + (thread->waits ? ", in a wait queue" : "") +
            (Peek(thread->timer.armed) != 0 ? ", timer armed" : "");
  }
  return text;
}

}  // namespace

void KernelMachine::Boot(sim::Cpu& cpu) {
  const uint64_t boot_entry = cpu.machine.CpuTicks(cpu);
  Kernel& kernel = sim::MakeKernel(cpu);
  kernel.init_function = InitThread;
  if (const Body& boot = reinterpret_cast<KernelMachine*>(kernel.params->scenario_value)->boot_) {
    boot(kernel);
  }
  KernelMain(kernel, boot_entry);
}

void KernelMachine::InitThread(Kernel& kernel) {
  reinterpret_cast<KernelMachine*>(kernel.params->scenario_value)->body_(kernel);
}

KernelMachine::KernelMachine(const KernelOptions& options)
    : machine_(MachineOptions(options), {.boot = Boot,
                                         .ap = sim::kKernelProgram.ap,
                                         .interrupt = sim::kKernelProgram.interrupt,
                                         .preempt = sim::kKernelProgram.preempt}) {
  std::string error;
  if (!machine_.Reserve(&error)) {
    ADD_FAILURE() << error;
    std::abort();
  }
  std::byte* const base = machine_.memory().base();
  auto& params = *new (base + abi::kParamsGpa) abi::BootParams;
  SetArena(options, base, params);
  PutTables(options, params);
  params.apic_mode = static_cast<uint8_t>(abi::ApicMode::kX2Apic);
  params.tsc_khz = machine_.options().tsc_khz;
  params.scenario_value = reinterpret_cast<uint64_t>(this);
  params.knobs = options.knobs;
  params.fault = options.fault;
  params.strategy = sequence::MakeStrategy(options.strategy);
  params.kernel = options.kernel;
  params.kernel.services = 1;
  params.scenario_knobs = options.scenario;
}

sim::End KernelMachine::RunToEnd(Body body) {
  body_ = std::move(body);
  return machine_.Run();
}

void KernelMachine::RunBoot(Body boot) {
  boot_ = std::move(boot);
  Run({});
}

void KernelMachine::Run(Body body) {
  const sim::End end = RunToEnd(std::move(body));
  const bool done = result().status == static_cast<uint32_t>(abi::GuestStatus::kDone);
  if (end.kind == sim::EndKind::kGuestExit && done) return;
  ADD_FAILURE() << Describe(end);
}

std::string KernelMachine::Describe(const sim::End& end) {
  std::string text = "ended with kind " + std::to_string(static_cast<int>(end.kind)) + " " +
                     end.text + " at " + std::to_string(machine_.now_ns()) + " ns";
  const abi::ResultPage& page = result();
  if (page.status == static_cast<uint32_t>(abi::GuestStatus::kPanic)) {
    text += std::string("; panic on CPU ") + std::to_string(page.panic_cpu) + " at " +
            page.panic_file + ":" + std::to_string(page.panic_line) + ": " + page.panic_text;
  }
  for (uint32_t cpu = 0; cpu < machine_.size() && cpu < 16; ++cpu) {
    text += "\n  CPU " + std::to_string(cpu) + ": " + machine_.Doing(cpu);
  }
  text += Threads(kernel());
  return text;
}

std::vector<abi::TraceRecord> KernelMachine::Trace(uint32_t cpu) {
  const abi::PerCpuHeader& header = kernel().percpu(CpuNumber(cpu)).header;
  const uint64_t end = std::min(header.ring_cursor, header.ring_end);
  return {reinterpret_cast<const abi::TraceRecord*>(header.ring_begin),
          reinterpret_cast<const abi::TraceRecord*>(end)};
}

uint64_t KernelMachine::CountOf(abi::TraceEvent event) {
  uint64_t count = 0;
  for (uint32_t cpu = 0; cpu < machine_.size(); ++cpu) {
    for (const abi::TraceRecord& record : Trace(cpu)) count += record.event == event ? 1u : 0u;
  }
  return count;
}

sim::Chaos ChaosOf(uint64_t seed) {
  sim::Random draw(seed, 77);
  sim::Chaos chaos;
  chaos.on = true;
  chaos.schedule = static_cast<sim::Schedule>(seed % 3);
  chaos.change_points = static_cast<uint32_t>(1 + draw.Below(8));
  chaos.expected_steps = 20'000;
  chaos.store_buffer = draw.Below(2) == 0;
  const auto rate = [&draw] {
    const uint64_t drawn = draw.Below(4);
    return drawn < 2 ? sim::Rate::kOff : drawn == 2 ? sim::Rate::kRare : sim::Rate::kWild;
  };
  chaos.delayed_ipi = rate();
  chaos.duplicated_ipi = draw.Below(2) == 0 ? sim::Rate::kOff : sim::Rate::kRare;
  chaos.late_timer = rate();
  chaos.resched = rate();
  return chaos;
}

void ForSeeds(uint64_t seeds, const KernelOptions& options, const KernelMachine::Body& body) {
  const char* const only = std::getenv("SIPI_SEED");
  const uint64_t first = only != nullptr ? std::strtoull(only, nullptr, 10) : 1;
  const uint64_t last = only != nullptr ? first : seeds;
  for (uint64_t seed = first; seed <= last && !testing::Test::HasFailure(); seed += kSeedStep) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    KernelOptions seeded = options;
    seeded.seed = seed;
    seeded.scenario.seed = seed;
    seeded.chaos = ChaosOf(seed);
    KernelMachine machine(seeded);
    machine.Run(body);
  }
}

bool SpinForIt(platform::Atomic<uint32_t>& word) {
  const auto set = [](uint32_t value) { return value != 0; };
  return platform::SpinUntil(word.Ref(), set, platform::DeadlineInUs(1'000'000));
}

}  // namespace sipi
