// What the tests that need a real KVM share: a machine that runs a few bytes of real-mode code.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "vmm/kvm/exit_names.h"
#include "vmm/kvm/kvm.h"
#include "vmm/kvm/vcpu.h"
#include "vmm/kvm/vm.h"
#include "vmm/memory/guest_memory.h"

namespace sipi {

inline constexpr Gpa kCodeGpa{0x1000};

// Skips, with the reason, where /dev/kvm cannot be used.
class KvmTest : public testing::Test {
 protected:
  void SetUp() override {
    auto kvm = Kvm::Open();
    if (!kvm.ok()) GTEST_SKIP() << "no KVM: " << kvm.status();
    kvm_.emplace(std::move(kvm).value());
  }

  const Kvm& kvm() const { return *kvm_; }

  // A VM with 1 MiB of RAM and `code` at kCodeGpa.
  void MakeVm(std::span<const uint8_t> code) {
    auto vm = Vm::Create(kvm());
    ASSERT_TRUE(vm.ok()) << vm.status();
    vm_.emplace(std::move(vm).value());
    auto memory = GuestMemory::Create(1 << 20);
    ASSERT_TRUE(memory.ok()) << memory.status();
    memory_.emplace(std::move(memory).value());
    ASSERT_TRUE(memory_->Write(kCodeGpa, std::as_bytes(code)).ok());
    ASSERT_TRUE(memory_->RegisterWith(*vm_).ok());
    ASSERT_TRUE(vm_->SetTssAndIdentityMap().ok());
  }

  // A vCPU about to run the code in real mode.
  Vcpu MakeVcpu(uint32_t id) {
    auto vcpu = vm_->CreateVcpu(id);
    EXPECT_TRUE(vcpu.ok()) << vcpu.status();
    if (!vcpu.ok()) return Vcpu();
    auto sregs = vcpu->GetSregs();
    EXPECT_TRUE(sregs.ok()) << sregs.status();
    sregs->cs.base = 0;
    sregs->cs.selector = 0;
    EXPECT_TRUE(vcpu->SetSregs(*sregs).ok());
    kvm_regs regs = {};
    regs.rip = kCodeGpa.value;
    regs.rflags = 2;
    EXPECT_TRUE(vcpu->SetRegs(regs).ok());
    return std::move(vcpu).value();
  }

  // Runs until an exit for user space.
  static uint32_t RunToExit(Vcpu& vcpu) {
    RunResult result;
    do {
      result = vcpu.Run();
    } while (result.state == RunState::kInterrupted || result.state == RunState::kAgain);
    EXPECT_EQ(result.state, RunState::kExit) << "errno " << result.error;
    return vcpu.run().exit_reason;
  }

  // In the order in which they must live: the memory outlives the VM.
  std::optional<Kvm> kvm_;
  std::optional<GuestMemory> memory_;
  std::optional<Vm> vm_;
};

}  // namespace sipi
