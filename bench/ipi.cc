// What IPIs cost, seen by the guest's TSC: the round trip between two vCPUs that halt or spin, and
// one ICR write that goes to all other CPUs, with the model's APIC (irqchip user) and with KVM's,
// alternately.
//
//   ipi [REPEATS [ROUNDS [CPUS]]]   default: 5 repeats of 2000 rounds; broadcasts among 1024 CPUs
//
// Prints a line per repeat and irqchip, then one with the medians of the medians.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bench/numbers.h"
#include "vmm/machine/machine.h"

extern "C" const unsigned char ipi_boot[], ipi_boot_end[], ipi_ap[], ipi_ap_end[], ipi_there[],
    ipi_there_end[], ipi_back[], ipi_back_end[], ipi_acknowledge[], ipi_acknowledge_end[];

namespace sipi {
namespace {

// As in ipi_guest.S.
constexpr uint64_t kBootGpa = 0x7000;
constexpr uint64_t kApGpa = 0x8000;
constexpr uint64_t kHandlersGpa = 0x9000;  // 256 bytes each
constexpr uint64_t kRoundsGpa = 0x508;
constexpr uint64_t kApsGpa = 0x50c;
constexpr uint64_t kModeGpa = 0x510;
constexpr uint64_t kSamplesGpa = 0x10000;
constexpr uint32_t kMaxSamples = 0x10000 / 4;
constexpr uint32_t kBroadcasts = 20;
constexpr uint8_t kFirstVector = 0x40;  // there, back, to all

enum class Mode : uint32_t { kHalt = 0, kSpin = 1, kBroadcast = 2 };

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "ipi: %s\n", what.c_str());
  std::exit(1);
}

void OrDie(const absl::Status& status) {
  if (!status.ok()) Die(status.ToString());
}

void WriteGuest(const GuestMemory& memory, Mode mode, uint32_t rounds, uint32_t cpus) {
  const auto write = [&](uint64_t gpa, const unsigned char* begin, const unsigned char* end) {
    OrDie(memory.Write(Gpa(gpa), std::as_bytes(std::span(begin, end))));
  };
  write(kBootGpa, ipi_boot, ipi_boot_end);
  write(kApGpa, ipi_ap, ipi_ap_end);
  const std::pair<const unsigned char*, const unsigned char*> handlers[] = {
      {ipi_there, ipi_there_end}, {ipi_back, ipi_back_end}, {ipi_acknowledge, ipi_acknowledge_end}};
  for (uint32_t i = 0; i < 3; ++i) {
    const uint32_t gpa = static_cast<uint32_t>(kHandlersGpa) + i * 256;
    write(gpa, handlers[i].first, handlers[i].second);
    **memory.At<uint32_t>(Gpa((kFirstVector + i) * uint64_t{4})) = gpa;  // CS 0, IP
  }
  **memory.At<uint32_t>(Gpa(kRoundsGpa)) = rounds;
  **memory.At<uint32_t>(Gpa(kApsGpa)) = cpus - 1;
  **memory.At<uint32_t>(Gpa(kModeGpa)) = static_cast<uint32_t>(mode);
}

// The guest's samples, in nanoseconds.
std::vector<double> Measure(IrqchipKind irqchip, Mode mode, uint32_t rounds, uint32_t cpus) {
  MachineOptions options;
  options.topology = FlatTopology(cpus);
  options.irqchip = irqchip;
  auto machine = Machine::Create(std::move(options));
  OrDie(machine.status());
  auto memory = GuestMemory::Create(1 << 20);
  OrDie(memory.status());
  WriteGuest(*memory, mode, rounds, cpus);
  OrDie((*machine)->SetMemory(std::move(*memory)));
  OrDie((*machine)->SetBootState([](kvm_regs& regs, kvm_sregs& sregs) {
    sregs.cs.selector = 0;
    sregs.cs.base = 0;
    regs.rip = kBootGpa;
  }));
  StopRequest stop;
  const RunEnd end = (*machine)->Run(stop, 120'000);
  if (end.kind != EndKind::kGuestExit) Die("the guest did not finish: " + end.text);
  const uint32_t count = mode == Mode::kBroadcast ? rounds * 2 : rounds;
  const auto samples = (*machine)->memory().ArrayAt<uint32_t>(Gpa(kSamplesGpa), count);
  OrDie(samples.status());
  std::vector<double> ns;
  for (const uint32_t ticks : *samples) {
    ns.push_back(ticks * 1e6 / (*machine)->tsc_khz());
  }
  return ns;
}

double Quantile(std::vector<double> values, double part) {
  const auto index = static_cast<size_t>(part * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(index), values.end());
  return values[index];
}

// Medians of each repeat, by what was measured.
using Medians = std::map<std::string, std::vector<double>>;

void Add(Medians& medians, const std::string& name, const std::vector<double>& ns) {
  const double median = Quantile(ns, 0.5);
  std::printf("%-44s median %10.2f us   p10 %10.2f   p90 %10.2f\n", name.c_str(), median / 1e3,
              Quantile(ns, 0.1) / 1e3, Quantile(ns, 0.9) / 1e3);
  medians[name].push_back(median);
}

void Repeat(Medians& medians, uint32_t rounds, uint32_t cpus) {
  const std::pair<IrqchipKind, const char*> chips[] = {{IrqchipKind::kUser, "user"},
                                                       {IrqchipKind::kKernel, "kernel"}};
  for (const auto& [mode, what] : {std::pair(Mode::kHalt, "round trip, halting, "),
                                   std::pair(Mode::kSpin, "round trip, spinning, ")}) {
    for (const auto& [chip, name] : chips) {
      Add(medians, std::string(what) + name, Measure(chip, mode, rounds, 2));
    }
  }
  const std::string to = "ICR write to " + std::to_string(cpus - 1) + " CPUs, ";
  for (const auto& [chip, name] : chips) {
    const std::vector<double> ns = Measure(chip, Mode::kBroadcast, kBroadcasts, cpus);
    std::vector<double> write, all;
    for (size_t i = 0; i < ns.size(); i += 2) {
      write.push_back(ns[i]);
      all.push_back(ns[i + 1]);
    }
    Add(medians, to + name, write);
    Add(medians, "  until all have it, " + std::string(name), all);
  }
}

int Main(int count, char** arguments) {
  const std::vector<uint64_t> numbers = bench::NumbersOf(
      count, arguments,
      "ipi [REPEATS [ROUNDS [CPUS]]]: what IPIs cost, with the model's APIC and with KVM's.",
      {{"REPEATS", 5, 1, 10'000}, {"ROUNDS", 2000, 1, kMaxSamples}, {"CPUS", 1024, 2, 4096}});
  const auto repeats = static_cast<uint32_t>(numbers[0]);
  const auto rounds = static_cast<uint32_t>(numbers[1]);
  const auto cpus = static_cast<uint32_t>(numbers[2]);
  Medians medians;
  for (uint32_t i = 0; i < repeats; ++i) Repeat(medians, rounds, cpus);
  std::printf("\nmedians of %u repeats\n", repeats);
  for (const auto& [name, values] : medians) {
    std::printf("%-44s %10.2f us   (%.2f to %.2f)\n", name.c_str(), Quantile(values, 0.5) / 1e3,
                *std::min_element(values.begin(), values.end()) / 1e3,
                *std::max_element(values.begin(), values.end()) / 1e3);
  }
  return 0;
}

}  // namespace
}  // namespace sipi

int main(int count, char** arguments) { return sipi::Main(count, arguments); }
