// How runs end: in every case all threads stop, and the reason is told. What would end a run that
// does not stop by itself is another reason: a limit far beyond what it needs on any host.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "tests/machine/machine_fixture.h"
#include "vmm/kvm/linux_kvm.h"
#include "vmm/vcpu/fault_report.h"

namespace sipi {
namespace {

constexpr int64_t kFarAwayMs = 250'000;

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Case V4; its triple fault is in run_machine_test.cc.
TEST_P(EachIrqchip, AllCpusHaltedForGoodIsDetected) {
  Make(Options(4, GetParam()), payload::boot_start_then_halt(), payload::ap_count_and_halt());
  EXPECT_EQ(Run(kFarAwayMs).kind, EndKind::kAllHalted) << Doings();
  EXPECT_TRUE(Has(machine_->Doing(CpuNumber(1)), "halted, IF=0, CS:IP 0800:")) << Doings();
}

TEST_P(EachIrqchip, ABootCpuThatHaltsAloneWithApsStillWaitingIsAllHalted) {
  Make(Options(3, GetParam()), payload::boot_halt());
  EXPECT_EQ(Run(30'000).kind, EndKind::kAllHalted) << Doings();
  EXPECT_TRUE(Has(machine_->Doing(CpuNumber(2)), "waiting for ")) << Doings();
}

TEST_P(EachIrqchip, AHaltedCpuWithItsTimerArmedIsNotAllHalted) {
  Make(Options(1, GetParam()), payload::boot_timer_halt(), {}, payload::handler_exit());
  EXPECT_EQ(Run(30'000).kind, EndKind::kGuestExit) << Doings();
}

// Case V9.
TEST_P(EachIrqchip, TheTimeLimitEndsAnEndlessLoopWithInterruptsOff) {
  Make(Options(2, GetParam()), payload::boot_spin());
  EXPECT_EQ(Run(200).kind, EndKind::kTimeLimit);
  EXPECT_EQ(machine_->Doing(CpuNumber(0)), "running, IF=0, CS:IP 0000:7001");
  EXPECT_TRUE(Has(machine_->Doing(CpuNumber(1)), "waiting for ")) << Doings();
}

// Case V7, also at the very beginning and while vCPUs are still being made.
TEST_P(EachIrqchip, AStopRequestEndsTheRunWheneverItComes) {
  for (const int delay_us : {0, 300, 3'000, 30'000}) {
    Make(Options(24, GetParam()), payload::boot_spin());
    StopRequest stop;
    std::thread other([&] {
      usleep(static_cast<useconds_t>(delay_us));
      stop.Request(SIGTERM);
      stop.Request(SIGINT);  // a second signal changes nothing
    });
    const RunEnd end = machine_->Run(stop, kFarAwayMs);
    other.join();
    EXPECT_EQ(end.kind, EndKind::kSignal);
    EXPECT_EQ(end.code, static_cast<uint32_t>(SIGTERM));
    machine_.reset();
  }
}

TEST_P(EachIrqchip, AMachineThatNeverRunsIsTakenDown) {
  Make(Options(16, GetParam()), payload::boot_spin());
  machine_.reset();
}

// Case V8.
TEST_P(EachIrqchip, FailureToCreateTheKthVcpuNamesIoctlNumberAndRemedy) {
  MachineOptions options = Options(16, GetParam());
  options.ioctl_hook = FailNthIoctl(KVM_CREATE_VCPU, 6, ENOMEM);
  Make(std::move(options), payload::boot_start_then_exit(), payload::ap_count_and_halt());
  const RunEnd end = Run();
  ASSERT_EQ(end.kind, EndKind::kHostError);
  const std::string message(end.error.message());
  EXPECT_TRUE(Has(message, "KVM_CREATE_VCPU")) << message;
  EXPECT_TRUE(Has(message, " of 16")) << message;
  EXPECT_TRUE(Has(message, "fewer --cpus")) << message;
}

TEST_F(MachineTest, FailureToCreateTheFirstVcpuIsReturnedAtOnce) {
  MachineOptions options = Options(4);
  options.ioctl_hook = FailNthIoctl(KVM_CREATE_VCPU, 1, ENOMEM);
  const auto machine = Machine::Create(std::move(options));
  ASSERT_FALSE(machine.ok());
  EXPECT_TRUE(Has(std::string(machine.status().message()), "KVM_CREATE_VCPU")) << machine.status();
}

TEST_F(MachineTest, FailureOfAnyIoctlOfTheSetUpLeavesNothingBehind) {
  for (const unsigned long request :
       {static_cast<unsigned long>(KVM_CREATE_VM), static_cast<unsigned long>(KVM_SET_TSS_ADDR),
        static_cast<unsigned long>(KVM_ENABLE_CAP),
        static_cast<unsigned long>(KVM_X86_SET_MSR_FILTER),
        static_cast<unsigned long>(KVM_GET_TSC_KHZ), static_cast<unsigned long>(KVM_SET_CPUID2)}) {
    MachineOptions options = Options(4);
    options.ioctl_hook = FailNthIoctl(request, 1, EPERM);
    EXPECT_FALSE(Machine::Create(std::move(options)).ok()) << std::hex << request;
  }
}

TEST_F(MachineTest, FailureOfKvmRunIsAFaultOfThatCpu) {
  MachineOptions options = Options(2);
  options.ioctl_hook = FailNthIoctl(KVM_RUN, 1, EFAULT);
  Make(std::move(options), payload::boot_exit());
  const RunEnd end = Run();
  EXPECT_EQ(end.kind, EndKind::kFault);
  EXPECT_TRUE(Has(end.text, "KVM_RUN on CPU 0: Bad address")) << end.text;
  EXPECT_TRUE(Has(end.text, "RIP 0x7000")) << end.text;
}

// Case V5. Real hardware executes POPCNT; a KVM that emulates ring 0 may not know it.
TEST_P(EachIrqchip, AnInstructionThatKvmCannotEmulateIsReportedInFull) {
  Make(Options(1, GetParam()), payload::boot_popcnt());
  const RunEnd end = Run();
  if (end.kind == EndKind::kGuestExit) GTEST_SKIP() << "this KVM executes POPCNT";
  ASSERT_EQ(end.kind, EndKind::kFault);
  EXPECT_TRUE(Has(end.text, "emulation failure")) << end.text;
  EXPECT_TRUE(Has(end.text, "CPU 0 (APIC ID 0): RIP 0x7006, CS 0x0000")) << end.text;
  EXPECT_TRUE(Has(end.text, "CR0 0x60000010")) << end.text;
  EXPECT_TRUE(Has(end.text, "CR4 0x0, EFER 0x0")) << end.text;
  EXPECT_TRUE(Has(end.text, "bytes at RIP: 66 f3 0f b8 d8")) << end.text;
}

// Exits that this host's KVM does not make by itself, put into kvm_run by hand.
class InjectedExit : public MachineTest {
 protected:
  void SetUp() override {
    MachineTest::SetUp();
    if (IsSkipped()) return;
    kvm_.emplace(Kvm::Open().value());
    vm_.emplace(Vm::Create(*kvm_).value());
    vcpu_.emplace(vm_->CreateVcpu(9).value());
  }
  void TearDown() override {
    vcpu_.reset();
    vm_.reset();
    kvm_.reset();
    MachineTest::TearDown();
  }
  std::string Describe() { return DescribeFatalExit(CpuNumber(3), *vcpu_, nullptr); }
  kvm_run& run() { return vcpu_->run(); }

 private:
  std::optional<Kvm> kvm_;
  std::optional<Vm> vm_;
  std::optional<Vcpu> vcpu_;
};

TEST_F(InjectedExit, FailedEntryNamesReasonCpuAndRegisters) {
  run().exit_reason = KVM_EXIT_FAIL_ENTRY;
  run().fail_entry.hardware_entry_failure_reason = 0x80000021;
  run().fail_entry.cpu = 1;
  const std::string text = Describe();
  EXPECT_TRUE(Has(text, "failed entry on CPU 3 (KVM_EXIT_FAIL_ENTRY)")) << text;
  EXPECT_TRUE(Has(text, "0x80000021")) << text;
  EXPECT_TRUE(Has(text, "CPU 3 (APIC ID 9): RIP 0xfff0, CS 0xf000 base 0xffff0000")) << text;
}

TEST_F(InjectedExit, InternalErrorShowsTheBytesThatKvmHandsOver) {
  run().exit_reason = KVM_EXIT_INTERNAL_ERROR;
  run().emulation_failure.suberror = KVM_INTERNAL_ERROR_EMULATION;
  run().emulation_failure.ndata = 3;
  run().emulation_failure.flags = KVM_INTERNAL_ERROR_EMULATION_FLAG_INSTRUCTION_BYTES;
  run().emulation_failure.insn_size = 3;
  run().emulation_failure.insn_bytes[0] = 0x0f;
  run().emulation_failure.insn_bytes[1] = 0x01;
  run().emulation_failure.insn_bytes[2] = 0xf9;
  const std::string text = Describe();
  EXPECT_TRUE(Has(text, "KVM internal error on CPU 3: emulation failure (sub-error 1)")) << text;
  EXPECT_TRUE(Has(text, "bytes at RIP: 0f 01 f9")) << text;
}

TEST_F(InjectedExit, AnUnknownExitReasonIsNamedByNumber) {
  run().exit_reason = 999;
  EXPECT_TRUE(Has(Describe(), "(999) on CPU 3, which sipi does not handle")) << Describe();
}

TEST_F(MachineTest, AccessesWhereNothingIsAreCounted) {
  Make(Options(1), payload::boot_wild_io());
  ASSERT_EQ(Run().kind, EndKind::kGuestExit);
  EXPECT_EQ(Word(kTotalGpa), 0xffffffffu);
  EXPECT_EQ(machine_->Counters().at("io.unhandled"), 2u);
}

TEST_F(MachineTest, ManyVcpusInEndlessLoopsStop) {
  Make(Options(64), payload::boot_start_then_halt(), payload::ap_ring_spinning());
  std::thread other([this] {
    const std::atomic_ref<uint32_t> ready(Word(kReadyGpa));
    while (ready.load(std::memory_order_acquire) != 63) std::this_thread::yield();
    stop_.Request(SIGTERM);
  });
  EXPECT_EQ(Run(kFarAwayMs).kind, EndKind::kSignal);
  other.join();
  EXPECT_TRUE(Has(machine_->Doing(CpuNumber(1)), "running")) << Doings();
}

}  // namespace
}  // namespace sipi
