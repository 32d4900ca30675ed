// Runs a few bytes of guest code on the real /dev/kvm.

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <array>
#include <span>
#include <thread>
#include <vector>

#include "apic/regs/registers.h"
#include "tests/vmm_low/kvm_fixture.h"
#include "vmm/base/tsc.h"
#include "vmm/cpu/cpuid.h"

namespace sipi {
namespace {

TEST_F(KvmTest, FactsOfThisHostArePlausible) {
  EXPECT_GE(kvm().facts().max_vcpus, kvm().facts().recommended_vcpus);
  EXPECT_GE(kvm().facts().max_vcpu_ids, kvm().facts().max_vcpus);
  EXPECT_GE(kvm().facts().vcpu_mmap_bytes, sizeof(kvm_run));
  EXPECT_NE(kvm().CheckExtension(KVM_CAP_USER_MEMORY), 0);
}

TEST_F(KvmTest, RealModeCodeWritesAPortAndHalts) {
  constexpr std::array<uint8_t, 10> kCode = {
      0xb0, 0x2a,  // mov al, 42
      0x04, 0x01,  // add al, 1
      0xe6, 0xf4,  // out 0xf4, al
      0xf4,        // hlt
      0xeb, 0xfd,  // jmp to the hlt
      0x90,        // nop
  };
  ASSERT_NO_FATAL_FAILURE(MakeVm(kCode));
  Vcpu vcpu = MakeVcpu(0);
  ASSERT_EQ(RunToExit(vcpu), uint32_t{KVM_EXIT_IO});
  EXPECT_EQ(vcpu.run().io.port, 0xf4);
  ASSERT_EQ(vcpu.io_data().size(), 1u);
  EXPECT_EQ(vcpu.io_data()[0], std::byte{43});
  EXPECT_EQ(RunToExit(vcpu), uint32_t{KVM_EXIT_HLT});
}

TEST_F(KvmTest, FilteredMsrsExitToUserSpaceWithReasonFilter) {
  constexpr std::array<uint8_t, 20> kCode = {
      0x66, 0xb9, 0x1b, 0x00, 0x00, 0x00,  // mov ecx, 0x1b
      0x0f, 0x32,                          // rdmsr
      0x66, 0xb9, 0xe0, 0x06, 0x00, 0x00,  // mov ecx, 0x6e0
      0x0f, 0x30,                          // wrmsr
      0x0f, 0x32,                          // rdmsr
      0xf4, 0x90,                          // hlt; nop
  };
  ASSERT_NO_FATAL_FAILURE(MakeVm(kCode));
  ASSERT_TRUE(vm_->EnableUserSpaceMsrs().ok());
  constexpr std::array<uint32_t, 2> kDenied = {apic::kMsrApicBase, apic::kMsrTscDeadline};
  ASSERT_TRUE(vm_->DenyMsrs(kDenied).ok());
  Vcpu vcpu = MakeVcpu(0);

  ASSERT_EQ(RunToExit(vcpu), uint32_t{KVM_EXIT_X86_RDMSR});
  EXPECT_EQ(vcpu.run().msr.index, apic::kMsrApicBase);
  EXPECT_EQ(vcpu.run().msr.reason, uint32_t{KVM_MSR_EXIT_REASON_FILTER});
  vcpu.run().msr.data = 0x1122334455667788;
  vcpu.run().msr.error = 0;

  ASSERT_EQ(RunToExit(vcpu), uint32_t{KVM_EXIT_X86_WRMSR});
  EXPECT_EQ(vcpu.run().msr.index, apic::kMsrTscDeadline);
  EXPECT_EQ(vcpu.run().msr.reason, uint32_t{KVM_MSR_EXIT_REASON_FILTER});
  EXPECT_EQ(vcpu.run().msr.data, 0x1122334455667788u);  // what the guest read before
  vcpu.run().msr.error = 0;

  ASSERT_EQ(RunToExit(vcpu), uint32_t{KVM_EXIT_X86_RDMSR});
  EXPECT_EQ(vcpu.run().msr.index, apic::kMsrTscDeadline);
  vcpu.run().msr.error = 0;
  EXPECT_EQ(RunToExit(vcpu), uint32_t{KVM_EXIT_HLT});
}

TEST_F(KvmTest, X2ApicMsrExitsToUserSpaceWithoutIrqchip) {
  constexpr std::array<uint8_t, 9> kCode = {
      0x66, 0xb9, 0x02, 0x08, 0x00, 0x00,  // mov ecx, 0x802
      0x0f, 0x32,                          // rdmsr
      0xf4,                                // hlt
  };
  ASSERT_NO_FATAL_FAILURE(MakeVm(kCode));
  ASSERT_TRUE(vm_->EnableUserSpaceMsrs().ok());
  Vcpu vcpu = MakeVcpu(7);
  ASSERT_EQ(RunToExit(vcpu), uint32_t{KVM_EXIT_X86_RDMSR});
  EXPECT_EQ(vcpu.run().msr.index, apic::X2ApicMsr(apic::Reg::kId));
  vcpu.run().msr.data = 7;
  vcpu.run().msr.error = 0;
  ASSERT_EQ(RunToExit(vcpu), uint32_t{KVM_EXIT_HLT});
  EXPECT_EQ(vcpu.GetRegs()->rax, 7u);
}

// The AP's ID is above 255, so that the MSI needs its upper half too.
TEST_F(KvmTest, MsiWithInitAndStartUpStartsAnApOfTheKernelIrqchip) {
  constexpr std::array<uint8_t, 4> kCode = {
      0xe6, 0xf4,  // out 0xf4, al
      0xeb, 0xfe,  // jmp to itself
  };
  constexpr uint32_t kApId = 300;
  ASSERT_NO_FATAL_FAILURE(MakeVm(kCode));
  ASSERT_TRUE(vm_->CreateKernelIrqchip().ok());
  ASSERT_TRUE(vm_->EnableX2ApicApi().ok());
  const Vcpu bsp = *vm_->CreateVcpu(0);
  Vcpu ap = *vm_->CreateVcpu(kApId);
  // KVM lets only a CPU whose CPUID shows x2APIC enter that mode.
  const auto supported = kvm().SupportedCpuid();
  ASSERT_TRUE(supported.ok()) << supported.status();
  Topology topology = FlatTopology(2);
  ASSERT_TRUE(SetApicIds("0,300", topology).ok());
  ASSERT_TRUE(ap.SetCpuid(CpuidTemplate(*supported, topology).ForCpu(CpuNumber(1))).ok());
  kvm_sregs sregs = *ap.GetSregs();
  sregs.apic_base |= apic::kApicBaseX2Apic;
  ASSERT_TRUE(ap.SetSregs(sregs).ok());
  EXPECT_STREQ(MpStateName(*ap.GetMpState()), "UNINITIALIZED");

  std::thread runner([&ap] {
    ASSERT_EQ(RunToExit(ap), uint32_t{KVM_EXIT_IO});
    EXPECT_EQ(ap.run().io.port, 0xf4);
  });
  EXPECT_TRUE(
      *vm_->SignalMsi({.vector = Vector(0), .mode = apic::DeliveryMode::kInit, .dest = kApId}));
  EXPECT_TRUE(
      *vm_->SignalMsi({.vector = Vector(1), .mode = apic::DeliveryMode::kStartUp, .dest = kApId}));
  runner.join();
  const kvm_sregs after = *ap.GetSregs();
  EXPECT_EQ(after.cs.selector, 0x0100);
  EXPECT_EQ(after.cs.base, 0x1000u);
}

TEST_F(KvmTest, MsiToAnIdThatNoVcpuHasIsNotDelivered) {
  constexpr std::array<uint8_t, 1> kCode = {0xf4};
  ASSERT_NO_FATAL_FAILURE(MakeVm(kCode));
  ASSERT_TRUE(vm_->CreateKernelIrqchip().ok());
  const Vcpu bsp = *vm_->CreateVcpu(0);
  const auto delivered =
      vm_->SignalMsi({.vector = Vector(0), .mode = apic::DeliveryMode::kInit, .dest = 5});
  ASSERT_TRUE(delivered.ok()) << delivered.status();
  EXPECT_FALSE(*delivered);
}

TEST_F(KvmTest, SplitIrqchipGivesApsInWaitForSipi) {
  constexpr std::array<uint8_t, 1> kCode = {0xf4};
  ASSERT_NO_FATAL_FAILURE(MakeVm(kCode));
  ASSERT_TRUE(vm_->CreateSplitIrqchip().ok());
  const Vcpu bsp = *vm_->CreateVcpu(0);
  const Vcpu ap = *vm_->CreateVcpu(1);
  EXPECT_EQ(*bsp.GetMpState(), uint32_t{KVM_MP_STATE_RUNNABLE});
  EXPECT_EQ(*ap.GetMpState(), uint32_t{KVM_MP_STATE_UNINITIALIZED});
  EXPECT_TRUE(ap.GetLapic().ok());
}

TEST_F(KvmTest, BootCpuIdMayBeAnotherThanZero) {
  constexpr std::array<uint8_t, 1> kCode = {0xf4};
  ASSERT_NO_FATAL_FAILURE(MakeVm(kCode));
  ASSERT_TRUE(vm_->CreateKernelIrqchip().ok());
  ASSERT_TRUE(vm_->SetBootCpuId(7).ok());
  const Vcpu ap = *vm_->CreateVcpu(0);
  const Vcpu bsp = *vm_->CreateVcpu(7);
  EXPECT_EQ(*ap.GetMpState(), uint32_t{KVM_MP_STATE_UNINITIALIZED});
  EXPECT_EQ(*bsp.GetMpState(), uint32_t{KVM_MP_STATE_RUNNABLE});
  EXPECT_NE(bsp.GetSregs()->apic_base & apic::kApicBaseBsp, 0u);
  EXPECT_EQ(vm_->ResetSregs(bsp)->apic_base & apic::kApicBaseBsp, 0u);
}

TEST_F(KvmTest, ImmediateExitInterruptsBeforeTheGuestRuns) {
  constexpr std::array<uint8_t, 2> kCode = {0xeb, 0xfe};  // jmp to itself
  ASSERT_NO_FATAL_FAILURE(MakeVm(kCode));
  Vcpu vcpu = MakeVcpu(0);
  vcpu.RequestImmediateExit();
  EXPECT_EQ(vcpu.Run().state, RunState::kInterrupted);
  vcpu.ClearImmediateExit();
  EXPECT_EQ(vcpu.run().immediate_exit, 0);
  EXPECT_EQ(vcpu.GetRegs()->rip, kCodeGpa.value);
}

TEST_F(KvmTest, SignalThatOnlyTheVcpusMaskLetsThroughInterruptsTheRun) {
  constexpr std::array<uint8_t, 2> kCode = {0xeb, 0xfe};  // jmp to itself
  ASSERT_NO_FATAL_FAILURE(MakeVm(kCode));
  Vcpu vcpu = MakeVcpu(0);
  std::thread runner([&vcpu] {
    sigset_t blocked, none;
    sigemptyset(&none);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    ASSERT_EQ(pthread_sigmask(SIG_BLOCK, &blocked, nullptr), 0);
    ASSERT_TRUE(vcpu.SetSignalMask(none).ok());
    ASSERT_EQ(pthread_kill(pthread_self(), SIGUSR1), 0);  // stays pending
    EXPECT_EQ(vcpu.Run().state, RunState::kInterrupted);
    int taken = 0;
    EXPECT_EQ(sigwait(&blocked, &taken), 0);
  });
  runner.join();
}

// Real-mode handlers at 0:2000H write AL to a port; the code enables interrupts and halts.
TEST_F(KvmTest, InjectedInterruptAndNmiEndAHaltInTheirHandlers) {
  constexpr std::array<uint8_t, 2> kCode = {0xfb, 0xf4};     // sti; hlt
  constexpr std::array<uint8_t, 2> kHandler = {0xe6, 0xf4};  // out 0xf4, al
  constexpr uint8_t kVector = 0x20;
  constexpr uint8_t kNmiVector = 2;
  for (const uint8_t vector : {kVector, kNmiVector}) {
    ASSERT_NO_FATAL_FAILURE(MakeVm(kCode));
    ASSERT_TRUE(memory_->Write(Gpa(0x2000), std::as_bytes(std::span(kHandler))).ok());
    **memory_->At<uint32_t>(Gpa(vector * 4u)) = 0x2000;  // its entry in the IVT, 0:2000H
    Vcpu vcpu = MakeVcpu(0);
    kvm_regs regs = *vcpu.GetRegs();
    regs.rsp = 0x8000;
    ASSERT_TRUE(vcpu.SetRegs(regs).ok());
    ASSERT_EQ(RunToExit(vcpu), uint32_t{KVM_EXIT_HLT});
    ASSERT_TRUE((vector == kNmiVector ? vcpu.Nmi() : vcpu.Interrupt(vector)).ok());
    ASSERT_EQ(RunToExit(vcpu), uint32_t{KVM_EXIT_IO}) << "vector " << int{vector};
    EXPECT_EQ(vcpu.run().io.port, 0xf4);
  }
}

TEST_F(KvmTest, SyncedRegistersCarryStateWithoutIoctls) {
  if ((kvm().facts().sync_regs & KVM_SYNC_X86_REGS) == 0) GTEST_SKIP() << "no KVM_CAP_SYNC_REGS";
  constexpr std::array<uint8_t, 5> kCode = {
      0x83, 0xc0, 0x01,  // add ax, 1
      0xe6, 0xf4,        // out 0xf4, al
  };
  ASSERT_NO_FATAL_FAILURE(MakeVm(kCode));
  Vcpu vcpu = MakeVcpu(0);
  vcpu.SyncOnExit(KVM_SYNC_X86_REGS | KVM_SYNC_X86_SREGS);
  vcpu.synced_regs() = *vcpu.GetRegs();
  vcpu.synced_regs().rax = 99;
  vcpu.MarkDirty(KVM_SYNC_X86_REGS);
  ASSERT_EQ(RunToExit(vcpu), uint32_t{KVM_EXIT_IO});
  EXPECT_EQ(vcpu.synced_regs().rax, 100u);
  EXPECT_EQ(vcpu.synced_sregs().cs.base, 0u);
}

TEST_F(KvmTest, TscOffsetTakesHostTimeToGuestTime) {
  constexpr std::array<uint8_t, 3> kCode = {0x0f, 0x31, 0xf4};  // rdtsc; hlt
  ASSERT_NO_FATAL_FAILURE(MakeVm(kCode));
  Vcpu vcpu = MakeVcpu(0);
  const auto offset = vcpu.TscOffset();
  ASSERT_TRUE(offset.ok()) << offset.status();
  const uint64_t before = ReadTsc();
  ASSERT_EQ(RunToExit(vcpu), uint32_t{KVM_EXIT_HLT});
  const uint64_t after = ReadTsc();
  const kvm_regs regs = *vcpu.GetRegs();
  const uint64_t guest =
      (regs.rdx << 32 | (regs.rax & 0xffffffff)) - static_cast<uint64_t>(*offset);
  const uint64_t slack = uint64_t{*vcpu.TscKhz()} / 10;  // 100 us, for the fall-back's error
  EXPECT_GE(guest + slack, before);
  EXPECT_LE(guest, after + slack);
}

TEST_F(KvmTest, StatisticsCountExits) {
  if (kvm().CheckExtension(KVM_CAP_BINARY_STATS_FD) == 0) {
    GTEST_SKIP() << "no KVM_CAP_BINARY_STATS_FD";
  }
  constexpr std::array<uint8_t, 4> kCode = {0xe6, 0xf4, 0xe6, 0xf4};  // out 0xf4, al; twice
  ASSERT_NO_FATAL_FAILURE(MakeVm(kCode));
  Vcpu vcpu = MakeVcpu(0);
  const auto before = vcpu.ReadStat("exits");
  ASSERT_TRUE(before.ok()) << before.status();
  ASSERT_EQ(RunToExit(vcpu), uint32_t{KVM_EXIT_IO});
  ASSERT_EQ(RunToExit(vcpu), uint32_t{KVM_EXIT_IO});
  EXPECT_GE(*vcpu.ReadStat("exits"), *before + 2);
  EXPECT_EQ(vcpu.ReadStat("no_such_counter").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(KvmTest, StateThatIsSetIsReadBack) {
  constexpr std::array<uint8_t, 1> kCode = {0xf4};
  ASSERT_NO_FATAL_FAILURE(MakeVm(kCode));
  Vcpu vcpu = MakeVcpu(0);
  kvm_debugregs debug = *vcpu.GetDebugRegs();
  debug.db[0] = 0x1234;
  EXPECT_TRUE(vcpu.SetDebugRegs(debug).ok());
  EXPECT_EQ(vcpu.GetDebugRegs()->db[0], 0x1234u);
  kvm_fpu fpu = *vcpu.GetFpu();
  fpu.fcw = 0x37f;
  EXPECT_TRUE(vcpu.SetFpu(fpu).ok());
  EXPECT_EQ(vcpu.GetFpu()->fcw, 0x37f);
  EXPECT_TRUE(vcpu.SetEvents(*vcpu.GetEvents()).ok());
  EXPECT_TRUE(vcpu.SetMsr(0x174, 0x10).ok());  // IA32_SYSENTER_CS
  EXPECT_EQ(*vcpu.GetMsr(0x174), 0x10u);
  EXPECT_EQ(vcpu.GetMsr(0x12345678).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(KvmTest, VcpusMayBeCreatedFromManyThreadsAtOnce) {
  constexpr std::array<uint8_t, 1> kCode = {0xf4};
  ASSERT_NO_FATAL_FAILURE(MakeVm(kCode));
  std::vector<Vcpu> vcpus(16);
  std::vector<std::thread> threads;
  for (uint32_t id = 0; id < vcpus.size(); ++id) {
    threads.emplace_back([&, id] {
      vcpus[id] = MakeVcpu(id);
      EXPECT_TRUE(vm_->ResetSregs(vcpus[id]).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (Vcpu& vcpu : vcpus) EXPECT_EQ(RunToExit(vcpu), uint32_t{KVM_EXIT_HLT});
}

}  // namespace
}  // namespace sipi
