// CPUID as a guest sees it, and the PVH entry, on the real /dev/kvm.

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "tests/vmm_low/kvm_fixture.h"
#include "vmm/cpu/cpuid.h"
#include "vmm/cpu/host_limits.h"
#include "vmm/load/pvh.h"

namespace sipi {
namespace {

// Runs cpuid with EAX = leaf and ECX = sub-leaf, and gives the registers after it.
class CpuidInGuest : public KvmTest {
 protected:
  void SetUp() override {
    KvmTest::SetUp();
    if (IsSkipped()) return;
    constexpr std::array<uint8_t, 3> kCode = {0x0f, 0xa2, 0xf4};  // cpuid; hlt
    ASSERT_NO_FATAL_FAILURE(MakeVm(kCode));
  }

  static kvm_regs Ask(Vcpu& vcpu, uint32_t leaf, uint32_t subleaf) {
    kvm_regs regs = {};
    regs.rip = kCodeGpa.value;
    regs.rflags = 2;
    regs.rax = leaf;
    regs.rcx = subleaf;
    EXPECT_TRUE(vcpu.SetRegs(regs).ok());
    EXPECT_EQ(RunToExit(vcpu), uint32_t{KVM_EXIT_HLT});
    return *vcpu.GetRegs();
  }
};

TEST_F(CpuidInGuest, ShowsTheSparseApicIdInEveryLeafAndSubLeaf) {
  auto topology = ParseTopology("sockets=3,cores=5,threads=2", 0);
  ASSERT_TRUE(topology.ok()) << topology.status();
  const auto supported = kvm().SupportedCpuid();
  ASSERT_TRUE(supported.ok()) << supported.status();
  const CpuidTemplate table(*supported, *topology);
  // Package 2, core 4, thread 1: 2 << 4 | 4 << 1 | 1.
  constexpr CpuNumber kLast{29};
  constexpr uint32_t kId = 41;
  Vcpu vcpu = MakeVcpu(kId);
  ASSERT_TRUE(vcpu.SetCpuid(table.ForCpu(kLast)).ok());
  EXPECT_EQ(Ask(vcpu, 1, 0).rbx >> 24, kId);
  for (const uint32_t leaf : {0xbu, 0x1fu}) {
    for (uint32_t subleaf = 0; subleaf < 4; ++subleaf) {
      EXPECT_EQ(Ask(vcpu, leaf, subleaf).rdx, kId) << "leaf " << leaf << " sub-leaf " << subleaf;
    }
    EXPECT_EQ(Ask(vcpu, leaf, 0).rax, 1u);
    EXPECT_EQ(Ask(vcpu, leaf, 0).rbx, 2u);
    EXPECT_EQ(Ask(vcpu, leaf, 1).rax, 4u);
    EXPECT_EQ(Ask(vcpu, leaf, 1).rbx, 10u);
  }
}

TEST_F(CpuidInGuest, ShowsTheLieInsteadOfTheApicId) {
  const auto supported = kvm().SupportedCpuid();
  ASSERT_TRUE(supported.ok()) << supported.status();
  const CpuidTemplate table(*supported, FlatTopology(4));
  Vcpu vcpu = MakeVcpu(3);
  ASSERT_TRUE(vcpu.SetCpuid(table.ForCpu(CpuNumber(3), FirmwareLie(ApicId(3)))).ok());
  EXPECT_EQ(Ask(vcpu, 1, 0).rbx >> 24, 19u);
  EXPECT_EQ(Ask(vcpu, 0xb, 0).rdx, 19u);
  EXPECT_EQ(Ask(vcpu, 0x1f, 1).rdx, 19u);
}

TEST_F(KvmTest, HostLimitsRefuseOneCpuMoreThanKvmAllows) {
  const KvmFacts& facts = kvm().facts();
  const auto check = [&facts](uint32_t cpus) {
    return CheckHostLimits(FlatTopology(cpus), facts.max_vcpus, facts.max_vcpu_ids,
                           facts.recommended_vcpus);
  };
  EXPECT_TRUE(check(facts.max_vcpus).ok());
  EXPECT_FALSE(check(facts.max_vcpus + 1).ok());
}

TEST_F(KvmTest, HighestApicIdThatKvmAllowsIsOneBelowItsLimit) {
  constexpr std::array<uint8_t, 1> kCode = {0xf4};
  ASSERT_NO_FATAL_FAILURE(MakeVm(kCode));
  EXPECT_TRUE(vm_->CreateVcpu(kvm().facts().max_vcpu_ids - 1).ok());
  EXPECT_FALSE(vm_->CreateVcpu(kvm().facts().max_vcpu_ids).ok());
}

TEST_F(KvmTest, PvhEntryRunsFlat32BitCodeWithTheStartInfoInEbx) {
  constexpr std::array<uint8_t, 10> kCode = {
      0x8b, 0x03,        // mov eax, [ebx]
      0xe7, 0xf4,        // out 0xf4, eax
      0x0f, 0x20, 0xc0,  // mov eax, cr0
      0xe7, 0xf4,        // out 0xf4, eax
      0xf4,              // hlt
  };
  ASSERT_NO_FATAL_FAILURE(MakeVm(kCode));
  const auto info = WritePvhInfo({.command_line = "x"}, Gpa(0x2000), *memory_);
  ASSERT_TRUE(info.ok()) << info.status();
  Vcpu vcpu = *vm_->CreateVcpu(0);
  kvm_sregs sregs = *vm_->ResetSregs(vcpu);
  kvm_regs regs = *vcpu.GetRegs();
  SetPvhEntryState(kCodeGpa, *info, regs, sregs);
  ASSERT_TRUE(vcpu.SetSregs(sregs).ok());
  ASSERT_TRUE(vcpu.SetRegs(regs).ok());
  const auto out = [&vcpu] {
    EXPECT_EQ(RunToExit(vcpu), uint32_t{KVM_EXIT_IO});
    uint32_t value = 0;
    if (vcpu.io_data().size() == sizeof(value)) {
      memcpy(&value, vcpu.io_data().data(), sizeof(value));
    }
    return value;
  };
  EXPECT_EQ(out(), 0x336ec578u);
  EXPECT_EQ(out(), 0x11u);
}

}  // namespace
}  // namespace sipi
