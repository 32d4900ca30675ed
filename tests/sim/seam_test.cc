// What platform.h promises, on simulated CPUs: time, waits, deadlines, clocks, lines.
#include <gtest/gtest.h>

#include "tests/sim/program_machine.h"

namespace sipi::sim {
namespace {

struct State {
  uint32_t word = 0;
  uint32_t pad[31] = {};
  uint32_t other = 0;
  uint64_t ns[64] = {};
  uint64_t ticks[64] = {};
  bool result = false;
  void (*boot)(Cpu& cpu, State& state) = nullptr;
  void (*ap)(Cpu& cpu, State& state) = nullptr;
};
using SeamMachine = ProgramMachine<State>;

State& StateOf(Cpu& cpu) { return SeamMachine::Of(cpu.machine); }

constexpr Program kProgram = {[](Cpu& cpu) {
                                EnableApic();
                                for (uint32_t ap = 1; ap < cpu.machine.size(); ++ap) {
                                  SendInit(ap);
                                  SendSipi(8, ap);
                                }
                                StateOf(cpu).boot(cpu, StateOf(cpu));
                                EndRun(cpu);
                              },
                              [](Cpu& cpu, Vector) {
                                EnableApic();
                                StateOf(cpu).ap(cpu, StateOf(cpu));
                              },
                              JustEoi};

sim::End RunTest(SeamMachine& machine, void (*boot)(Cpu&, State&), void (*ap)(Cpu&, State&)) {
  machine.state().boot = boot;
  machine.state().ap = ap;
  return machine.Run();
}

void Nothing(Cpu&, State&) {}

TEST(Seam, SpinUntilEndsWithTheStoreAndNotBefore) {
  SeamMachine machine(OptionsFor(2), kProgram);
  RunTest(
      machine,
      [](Cpu& cpu, State& state) {
        EXPECT_TRUE(WaitForValue(state.word, 2, 10'000));
        state.ns[0] = cpu.now_ns;
      },
      [](Cpu& cpu, State& state) {
        platform::DelayUs(100);
        Increment(state.word);
        platform::DelayUs(100);
        Increment(state.word);
        state.ns[1] = cpu.now_ns;
      });
  const Costs costs;
  EXPECT_GE(machine.state().ns[0], machine.state().ns[1]);
  EXPECT_LE(machine.state().ns[0], machine.state().ns[1] + costs.line_ns + 20);
}

TEST(Seam, SpinUntilGivesUpAtItsDeadline) {
  SeamMachine machine(OptionsFor(1), kProgram);
  RunTest(
      machine,
      [](Cpu& cpu, State& state) {
        const uint64_t begin = cpu.now_ns;
        state.result = WaitForValue(state.word, 1, 500);
        state.ns[0] = cpu.now_ns - begin;
      },
      Nothing);
  EXPECT_FALSE(machine.state().result);
  EXPECT_GE(machine.state().ns[0], 500'000u);
  EXPECT_LE(machine.state().ns[0], 501'000u);
}

TEST(Seam, AStoreToAnotherWordOfTheLineWakesNobody) {
  SeamMachine machine(OptionsFor(2), kProgram);
  RunTest(
      machine, [](Cpu&, State& state) { state.result = WaitForValue(state.word, 1, 1000); },
      [](Cpu&, State& state) {
        platform::DelayUs(10);
        Shared(state.pad[0]).Store(1, std::memory_order_release);
      });
  EXPECT_FALSE(machine.state().result);
}

TEST(Seam, ASpinningCpuTakesItsInterruptsAndSpinsOn) {
  SeamMachine machine(OptionsFor(2), kProgram);
  RunTest(
      machine,
      [](Cpu&, State& state) {
        platform::IrqEnable();
        state.result = WaitForValue(state.word, 1, 1000);
      },
      [](Cpu&, State& state) {
        platform::DelayUs(10);
        SendIcr(apic::DeliveryMode::kFixed, 0x66, 0);
        platform::DelayUs(10);
        Increment(state.word);
      });
  EXPECT_TRUE(machine.state().result);
  EXPECT_EQ(machine.machine().stats().interrupts, 1u);
}

TEST(Seam, ADelayIsInterruptedAndStillAsLong) {
  SeamMachine machine(OptionsFor(2), kProgram);
  RunTest(
      machine,
      [](Cpu& cpu, State& state) {
        platform::IrqEnable();
        const uint64_t begin = cpu.now_ns;
        platform::DelayUs(100);
        state.ns[0] = cpu.now_ns - begin;
      },
      [](Cpu&, State&) { SendIcr(apic::DeliveryMode::kFixed, 0x66, 0); });
  EXPECT_EQ(machine.machine().stats().interrupts, 1u);
  EXPECT_GE(machine.state().ns[0], 100'000u);
  EXPECT_LE(machine.state().ns[0], 100'100u);
}

TEST(Seam, EachCpuReadsItsOwnClock) {
  Options options = OptionsFor(3);
  options.cpus[1].tsc_offset_ticks = -5000;
  options.cpus[2].tsc_offset_ticks = 70000;
  SeamMachine machine(options, kProgram);
  RunTest(
      machine, [](Cpu&, State&) { platform::DelayUs(100); },
      [](Cpu& cpu, State& state) {
        state.ticks[cpu.number] = platform::NowTicks();
        state.ns[cpu.number] = cpu.now_ns;
        // A deadline is on the clock of the CPU that waits.
        EXPECT_FALSE(WaitForValue(state.word, 1, 20));
        EXPECT_GE(cpu.now_ns - state.ns[cpu.number], 20'000u);
        EXPECT_LE(cpu.now_ns - state.ns[cpu.number], 21'000u);
      });
  State& state = machine.state();
  EXPECT_EQ(state.ticks[1], state.ns[1] * 2 - 5000);
  EXPECT_EQ(state.ticks[2], state.ns[2] * 2 + 70000);
}

TEST(Seam, ALineThatManyWantIsPaidForInTurn) {
  constexpr uint32_t kCpus = 33;
  SeamMachine machine(OptionsFor(kCpus), kProgram);
  RunTest(
      machine,
      [](Cpu&, State& state) {
        platform::DelayUs(500);
        Shared(state.word).Store(1, std::memory_order_release);
        EXPECT_TRUE(WaitForValue(state.other, kCpus - 1, 1000));
      },
      [](Cpu& cpu, State& state) {
        EXPECT_TRUE(WaitForValue(state.word, 1, 1000));
        state.ns[cpu.number] = cpu.now_ns;
        Increment(state.other);
      });
  uint64_t first = ~uint64_t{0};
  uint64_t last = 0;
  for (uint32_t cpu = 1; cpu < kCpus; ++cpu) {
    first = std::min(first, machine.state().ns[cpu]);
    last = std::max(last, machine.state().ns[cpu]);
  }
  EXPECT_GE(last - first, (kCpus - 2) * uint64_t{Costs().line_ns});
}

TEST(Seam, AllHaltedEndsTheRunAndSpinningForeverMeetsTheLimit) {
  SeamMachine halted(OptionsFor(2), kProgram);
  const auto halt = [](Cpu&, State&) { platform::HaltForever(); };
  EXPECT_EQ(RunTest(halted, halt, halt).kind, EndKind::kAllHalted);
  EXPECT_EQ(halted.machine().Doing(0), "halted, IF=0");

  Options options = OptionsFor(2);
  options.time_limit_ns = 5'000'000;
  SeamMachine spinning(options, kProgram);
  const auto spin = [](Cpu&, State& state) {
    (void)platform::SpinUntil(
        Shared(state.word), [](uint32_t value) { return value != 0; }, platform::NoDeadline());
  };
  EXPECT_EQ(RunTest(spinning, spin, halt).kind, EndKind::kTimeLimit);
  EXPECT_EQ(spinning.machine().Doing(0), "spinning on a word, IF=0");
}

TEST(Seam, ManyMachinesLiveSideBySide) {
  std::vector<std::unique_ptr<SeamMachine>> machines;
  for (uint32_t i = 0; i < 8; ++i) {
    machines.push_back(std::make_unique<SeamMachine>(OptionsFor(2 + i), kProgram));
  }
  for (auto& machine : machines) {
    const auto end = RunTest(
        *machine,
        [](Cpu& cpu, State& state) {
          EXPECT_TRUE(WaitForValue(state.word, cpu.machine.size() - 1, 10'000));
        },
        [](Cpu&, State& state) { Increment(state.word); });
    EXPECT_EQ(end.kind, EndKind::kGuestExit);
  }
}

}  // namespace
}  // namespace sipi::sim
