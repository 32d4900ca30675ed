// V1: what the doctor says for each way in which KVM cannot be used.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm/cli/doctor_report.h"
#include "vmm/cli/kvm_access.h"

namespace sipi {
namespace {

absl::Status OpenStatus(const std::string& device) {
  KvmOptions options;
  options.path = device;
  return Kvm::Open(options).status();
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Doctor, MissingDeviceHasItsStatusAndRemedy) {
  const absl::Status status = OpenStatus("/no/such/kvm");
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kKvmMissing);
  const std::string text = DoctorKvmFailure(status, "/no/such/kvm");
  EXPECT_TRUE(Contains(text, "/no/such/kvm: No such file or directory")) << text;
  EXPECT_TRUE(Contains(text, "--device /dev/kvm")) << text;
}

TEST(Doctor, AnotherDeviceInItsPlaceIsRemovedAndMadeAnew) {
  const absl::Status status = OpenStatus("/dev/null");
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kKvmNotADevice);
  const std::string text = DoctorKvmFailure(status, "/dev/null");
  EXPECT_TRUE(Contains(text, "sudo rm /dev/null")) << text;
  EXPECT_TRUE(Contains(text, "c 10 232")) << text;
}

TEST(Doctor, RegularFileIsNoKvmDevice) {
  const std::string path = testing::TempDir() + "doctor_test_kvm";
  close(open(path.c_str(), O_CREAT | O_WRONLY, 0600));
  EXPECT_EQ(ExitCodeOf(OpenStatus(path)), ExitCode::kKvmNotADevice);
}

TEST(Doctor, MissingPermissionNamesTheGroup) {
  const std::string path = testing::TempDir() + "doctor_test_forbidden";
  close(open(path.c_str(), O_CREAT | O_WRONLY, 0600));
  chmod(path.c_str(), 0);
  // root may open everything, so the refusal is looked at as another user would see it.
  const uid_t user = geteuid();
  if (user == 0) {
    ASSERT_EQ(seteuid(65534), 0);
  }
  const absl::Status status = OpenStatus(path);
  const std::string text = DoctorKvmFailure(status, path);
  if (user == 0) {
    ASSERT_EQ(seteuid(0), 0);
  }
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kKvmNotPermitted);
  EXPECT_TRUE(Contains(text, "sudo usermod -aG kvm $USER")) << text;
  EXPECT_TRUE(Contains(text, "sudo chmod 660")) << text;
}

TEST(Doctor, HostSectionNamesKernelAndProcessor) {
  const std::string text = DoctorHostSection();
  EXPECT_TRUE(Contains(text, "  kernel      "));
  EXPECT_TRUE(Contains(text, "  processor   "));
  EXPECT_TRUE(Contains(text, "  KVM module  "));
}

TEST(ExitCodes, UsageAndOtherErrorsDiffer) {
  EXPECT_EQ(ExitCodeOf(absl::InvalidArgumentError("x")), ExitCode::kUsage);
  EXPECT_EQ(ExitCodeOf(absl::ResourceExhaustedError("x")), ExitCode::kError);
  EXPECT_EQ(ExitCodeOf(KvmProblem::kWrongVersion), ExitCode::kKvmWrongVersion);
}

TEST(HostCpuLimits, FallBackToWhatNoKvmExceeds) {
  EXPECT_EQ(HostCpuLimits("/no/such/kvm").max_cpus, 4096u);
}

}  // namespace
}  // namespace sipi
