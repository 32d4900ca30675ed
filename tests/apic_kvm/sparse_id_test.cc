// Machines whose APIC IDs are not 0, 1, 2 ...: case A14 of the APIC's list.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/apic_kvm/program_fixture.h"

namespace sipi {
namespace {

struct IdCase {
  const char* name;
  const char* topology;  // ParseTopology
  uint32_t cpus;
  const char* ids;  // SetApicIds, or ""
};

class SparseIds : public ProgramTest,
                  public testing::WithParamInterface<std::tuple<IrqchipKind, IdCase>> {
 protected:
  static constexpr uint32_t kSubLeavesOfB = 3;
  static constexpr uint32_t kSubLeavesOf1f = 4;

  // Where a CPU's program reads what it is.
  struct Reads {
    size_t leaf1, apic_id;
    std::vector<size_t> sub_leaves;  // of 0BH and 1FH
  };

  Reads ReadIds(Program& program) {
    Reads reads = {};
    reads.leaf1 = program.Cpuid(1, 0);
    reads.apic_id = program.ReadX2(Reg::kId);
    for (uint32_t i = 0; i < kSubLeavesOfB; ++i) {
      reads.sub_leaves.push_back(program.Cpuid(0xb, i));
    }
    for (uint32_t i = 0; i < kSubLeavesOf1f; ++i) {
      reads.sub_leaves.push_back(program.Cpuid(0x1f, i));
    }
    return reads;
  }
};

INSTANTIATE_TEST_SUITE_P(
    Machines, SparseIds,
    testing::Combine(testing::ValuesIn(kEachChip),
                     testing::Values(IdCase{"Stride2", "stride=2", 8, ""},
                                     IdCase{"Gaps3x5x2", "sockets=3,cores=5,threads=2", 30, ""},
                                     IdCase{"List", "", 4, "0,254,256,4095"},
                                     IdCase{"BootCpuIs7", "", 5, "7,0,254,256,4095"})),
    [](const auto& test) {
      return IrqchipName({std::get<0>(test.param), 0}) + std::get<1>(test.param).name;
    });

TEST_P(SparseIds, EveryCpuStartsKnowsItsIdAndGetsItsIpi) {
  const auto& [irqchip, id_case] = GetParam();
  MachineOptions options = Options(1, irqchip);
  absl::StatusOr<Topology> topology = ParseTopology(id_case.topology, id_case.cpus);
  ASSERT_TRUE(topology.ok()) << topology.status();
  options.topology = *std::move(topology);
  if (*id_case.ids != 0) {
    ASSERT_TRUE(SetApicIds(id_case.ids, options.topology).ok());
  }
  ASSERT_EQ(options.topology.cpu_count(), id_case.cpus);
  MakeProgrammed(std::move(options));
  std::vector<Reads> reads;
  for (uint32_t cpu = 0; cpu < id_case.cpus; ++cpu) {
    Enable(Of(cpu));
    reads.push_back(ReadIds(Of(cpu)));
    if (cpu == 0) continue;
    EndInterrupts(cpu);
    Of(cpu).Increment(WordGpa(0));
    Of(cpu).Stay();
  }
  Program& boot = Of(0);
  StartOthers(boot);
  // A vector of its own to each.
  for (uint32_t cpu = 1; cpu < id_case.cpus; ++cpu) {
    Ping(boot, cpu, static_cast<uint8_t>(0x40 + cpu), 1);
  }
  boot.Exit();
  ASSERT_TRUE(RunPrograms()) << end_.text << Doings();
  for (uint32_t cpu = 0; cpu < id_case.cpus; ++cpu) {
    SCOPED_TRACE(cpu);
    const uint32_t id = machine_->apic_id(CpuNumber(cpu)).value;
    EXPECT_EQ(Starts(cpu), 1u);
    EXPECT_EQ(Result(Of(cpu), reads[cpu].leaf1).ebx >> 24, id & 0xff);
    EXPECT_EQ(Result(Of(cpu), reads[cpu].apic_id).low, id);
    for (const size_t leaf : reads[cpu].sub_leaves) EXPECT_EQ(Result(Of(cpu), leaf).high, id);
    for (uint32_t other = 1; cpu != 0 && other < id_case.cpus; ++other) {
      EXPECT_EQ(Interrupts(cpu, static_cast<uint8_t>(0x40 + other)), other == cpu ? 1u : 0u);
    }
  }
}

}  // namespace
}  // namespace sipi
