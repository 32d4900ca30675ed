// The guest kernel with its services on N simulated CPUs, with a test's function as thread "init":
//
//   TEST(Completion, LetsOneThrough) {
//     KernelMachine machine({.cpus = 4});
//     machine.Run([](Kernel& kernel) {  // on thread "init", bound to CPU 0; all CPUs are online
//       auto& state = *AllocateArray<State>(kernel, 1);  // what CPUs share lies in machine memory
//       SpawnThread(kernel, {.name = "other", .function = ..., .argument = &state});
//       state.done.Wait();
//       EXPECT_EQ(state.order, 2u);              // gtest works on every thread
//     });                                        // returning ends the machine
//   }
//
// Run fails the test if the machine ends otherwise: by a panic, a fault, all halted (somebody
// sleeps for ever), or the limit of virtual time. Under chaos and many seeds:
//
//   ForSeeds(200, {.cpus = 3}, [](Kernel& kernel) { ... });
//
// runs each seed with another kind of schedule: as the costs have it, random delays, CPUs of which
// some are slow; store buffers; late IPIs and timers; threads that lose their CPU at any step. The
// seed is named where a test fails; `--gtest_filter=...` with SIPI_SEED=n in the environment runs
// only it.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "guest/kernel/alloc.h"
#include "guest/kernel/kernel.h"
#include "guest/platform/sim/machine.h"

namespace sipi {

struct KernelOptions {
  uint32_t cpus = 2;
  uint32_t threads_per_core = 1;  // CPU n is thread n % threads_per_core of its core
  bool smt = true;                // false: only thread 0 of each core is brought up
  uint32_t cpus_per_node = 0;     // CPU n is of node n / cpus_per_node; 0: one node
  uint64_t seed = 1;
  abi::KernelKnobs kernel = {};  // services is set
  abi::ScenarioKnobs scenario = {};
  abi::Knobs knobs = {};
  sequence::StrategyId strategy = sequence::StrategyId::kFull;
  sim::Chaos chaos = {};
  abi::FaultSpec fault = {};
  uint64_t heap_bytes = uint64_t{64} << 20;
  uint32_t ring_records = 4096;  // of each CPU
  uint64_t time_limit_ns = 60'000'000'000;
  std::vector<uint16_t> choices = {};  // with sim::Schedule::kChosen
};

class KernelMachine {
 public:
  using Body = std::function<void(Kernel&)>;

  explicit KernelMachine(const KernelOptions& options);

  // Boots, runs `body` on thread "init", ends. Fails the test unless it comes to its end. Once.
  void Run(Body body);
  // `boot` is what the boot CPU does from its first instruction on; it ends the machine itself.
  void RunBoot(Body boot);
  // The same for tests that expect another end.
  sim::End RunToEnd(Body body);
  // How the kernel ended, in words: panic text and place, or the machine's own reason.
  std::string Describe(const sim::End& end);

  sim::Machine& machine() { return machine_; }
  Kernel& kernel() { return machine_.kernel(); }
  const abi::ResultPage& result() { return *kernel().result; }
  // After the run: what a CPU traced, oldest first.
  std::vector<abi::TraceRecord> Trace(uint32_t cpu);
  uint64_t CountOf(abi::TraceEvent event);  // on all CPUs

 private:
  static void Boot(sim::Cpu& cpu);
  static void InitThread(Kernel& kernel);

  sim::Machine machine_;
  Body body_;
  Body boot_;
};

// The chaos that ForSeeds gives a seed.
sim::Chaos ChaosOf(uint64_t seed);

void ForSeeds(uint64_t seeds, const KernelOptions& options, const KernelMachine::Body& body);

// Of a simulated CPU: spins until the word is not 0. False: not within 1 s.
bool SpinForIt(platform::Atomic<uint32_t>& word);

}  // namespace sipi
