// What this machine will not do by itself: ioctls that fail, on the real /dev/kvm.

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/vmm_low/kvm_fixture.h"

namespace sipi {
namespace {

size_t OpenDescriptors() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(files), end(files)));
}

bool Contains(const absl::Status& status, const std::string& text) {
  return std::string(status.message()).find(text) != std::string::npos;
}

TEST_F(KvmTest, TheKthVcpuThatFailsNamesIoctlIdAndRemedyAndLeavesNothingOpen) {
  const size_t before = OpenDescriptors();
  {
    const auto failing =
        Kvm::Open({.path = "/dev/kvm", .hook = FailNthIoctl(KVM_CREATE_VCPU, 3, ENOMEM)});
    ASSERT_TRUE(failing.ok()) << failing.status();
    auto vm = Vm::Create(*failing);
    ASSERT_TRUE(vm.ok()) << vm.status();
    std::vector<Vcpu> vcpus;
    for (uint32_t id = 10; id < 12; ++id) vcpus.push_back(*vm->CreateVcpu(id));
    const auto third = vm->CreateVcpu(12);
    ASSERT_FALSE(third.ok());
    EXPECT_EQ(third.status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_TRUE(Contains(third.status(), "KVM_CREATE_VCPU(id=12)")) << third.status();
    EXPECT_TRUE(Contains(third.status(), "ENOMEM")) << third.status();
    EXPECT_TRUE(Contains(third.status(), "fewer --cpus")) << third.status();
  }
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST_F(KvmTest, TooFewOpenFilesNameTheLimitToRaise) {
  const auto failing =
      Kvm::Open({.path = "/dev/kvm", .hook = FailNthIoctl(KVM_CREATE_VCPU, 1, EMFILE)});
  ASSERT_TRUE(failing.ok()) << failing.status();
  auto vm = Vm::Create(*failing);
  ASSERT_TRUE(vm.ok()) << vm.status();
  EXPECT_TRUE(Contains(vm->CreateVcpu(0).status(), "ulimit -n"));
}

TEST_F(KvmTest, AnotherApiVersionIsItsOwnProblem) {
  const auto says_11 =
      std::make_shared<const IoctlHook>([](unsigned long request) -> std::optional<IoctlAnswer> {
        if (request != KVM_GET_API_VERSION) return std::nullopt;
        return IoctlAnswer{.result = 11};
      });
  const auto old = Kvm::Open({.path = "/dev/kvm", .hook = says_11});
  ASSERT_FALSE(old.ok());
  EXPECT_EQ(KvmProblemOf(old.status()), KvmProblem::kWrongVersion);
  EXPECT_TRUE(Contains(old.status(), "11")) << old.status();
}

TEST_F(KvmTest, MissingCapabilityIsNamed) {
  const auto failing =
      Kvm::Open({.path = "/dev/kvm", .hook = FailNthIoctl(KVM_ENABLE_CAP, 1, EINVAL)});
  ASSERT_TRUE(failing.ok()) << failing.status();
  auto vm = Vm::Create(*failing);
  ASSERT_TRUE(vm.ok()) << vm.status();
  EXPECT_TRUE(Contains(vm->EnableX2ApicApi(), "KVM_CAP_X2APIC_API"));
}

TEST_F(KvmTest, SameApicIdTwiceIsRefused) {
  constexpr std::array<uint8_t, 1> kCode = {0xf4};
  ASSERT_NO_FATAL_FAILURE(MakeVm(kCode));
  const auto first = vm_->CreateVcpu(5);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = vm_->CreateVcpu(5);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(Contains(second.status(), "same APIC ID")) << second.status();
}

TEST_F(KvmTest, FailedRunIsAStateWithItsErrno) {
  const auto failing = Kvm::Open({.path = "/dev/kvm", .hook = FailNthIoctl(KVM_RUN, 1, EFAULT)});
  ASSERT_TRUE(failing.ok()) << failing.status();
  auto vm = Vm::Create(*failing);
  ASSERT_TRUE(vm.ok()) << vm.status();
  Vcpu vcpu = *vm->CreateVcpu(0);
  const RunResult result = vcpu.Run();
  EXPECT_EQ(result.state, RunState::kFailed);
  EXPECT_EQ(result.error, EFAULT);
}

}  // namespace
}  // namespace sipi
