// What the tests of the machine share: a small machine with payloads in its memory, and the check
// that a run leaves neither thread nor descriptor behind.
#pragma once

#include <dirent.h>
#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include "tests/machine/payloads.h"
#include "vmm/kvm/kvm.h"
#include "vmm/machine/machine.h"

namespace sipi {

// Number of entries of a directory, itself and its parent not counted.
inline int CountEntries(const char* path) {
  DIR* directory = opendir(path);
  if (directory == nullptr) return -1;
  int count = 0;
  while (const dirent* entry = readdir(directory)) count += entry->d_name[0] != '.' ? 1 : 0;
  closedir(directory);
  return count;
}

class MachineTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto kvm = Kvm::Open(); !kvm.ok()) GTEST_SKIP() << "no KVM: " << kvm.status();
    std::thread([] {}).join();  // a sanitizer's own thread starts with the first one
    threads_before_ = CountEntries("/proc/self/task");
    files_before_ = CountEntries("/proc/self/fd");
  }

  void TearDown() override {
    machine_.reset();
    if (files_before_ < 0) return;  // skipped
    // A joined thread may still be seen in /proc for a moment, until the kernel has reaped it.
    for (int i = 0; i < 1000 && CountEntries("/proc/self/task") > threads_before_; ++i) {
      sched_yield();
    }
    EXPECT_LE(CountEntries("/proc/self/task"), threads_before_) << "a thread was left";
    EXPECT_LE(CountEntries("/proc/self/fd"), files_before_) << "a descriptor was left";
  }

  static MachineOptions Options(uint32_t cpus, IrqchipKind irqchip = IrqchipKind::kUser) {
    MachineOptions options;
    options.topology = FlatTopology(cpus);
    options.irqchip = irqchip;
    return options;
  }

  // A machine about to run `boot` at kBootGpa, with `ap` where SIPI vector 8 starts. The interrupt
  // `vector` goes to `handler`.
  void Make(MachineOptions options, std::span<const std::byte> boot,
            std::span<const std::byte> ap = {}, std::span<const std::byte> handler = {},
            uint8_t vector = 0x40) {
    auto machine = Machine::Create(std::move(options));
    ASSERT_TRUE(machine.ok()) << machine.status();
    machine_ = std::move(*machine);
    auto memory = GuestMemory::Create(1 << 20);
    ASSERT_TRUE(memory.ok()) << memory.status();
    ASSERT_TRUE(memory->Write(Gpa(kBootGpa), boot).ok());
    ASSERT_TRUE(memory->Write(Gpa(kApGpa), ap).ok());
    ASSERT_TRUE(memory->Write(Gpa(kHandlerGpa), handler).ok());
    *memory->At<uint32_t>(Gpa(uint64_t{vector} * 4)).value() = kHandlerGpa;  // CS 0, IP
    *memory->At<uint32_t>(Gpa(kApsGpa)).value() = machine_->cpus() - 1;
    ASSERT_TRUE(machine_->SetMemory(std::move(*memory)).ok());
    const absl::Status state = machine_->SetBootState([](kvm_regs& regs, kvm_sregs& sregs) {
      sregs.cs.selector = 0;
      sregs.cs.base = 0;
      regs.rip = kBootGpa;
    });
    ASSERT_TRUE(state.ok()) << state;
  }

  uint32_t& Word(uint64_t gpa) { return *machine_->memory().At<uint32_t>(Gpa(gpa)).value(); }

  RunEnd Run(int64_t time_limit_ms = 20'000) { return machine_->Run(stop_, time_limit_ms); }

  // For failure messages.
  std::string Doings() {
    std::string text;
    for (uint32_t cpu = 0; cpu < machine_->cpus(); ++cpu) {
      text += "CPU " + std::to_string(cpu) + ": " + machine_->Doing(CpuNumber(cpu)) + "\n";
    }
    return text;
  }

  std::unique_ptr<Machine> machine_;
  StopRequest stop_;

 private:
  int threads_before_ = -1;
  int files_before_ = -1;
};

// Tests that hold with each irqchip.
class EachIrqchip : public MachineTest, public testing::WithParamInterface<IrqchipKind> {};

inline std::string IrqchipName(const testing::TestParamInfo<IrqchipKind>& info) {
  switch (info.param) {
    case IrqchipKind::kUser:
      return "User";
    case IrqchipKind::kSplit:
      return "Split";
    case IrqchipKind::kKernel:
      return "Kernel";
  }
  return "Unknown";
}

inline constexpr uint32_t kExitValue = 0x31;  // what the payloads write to the exit port

}  // namespace sipi
