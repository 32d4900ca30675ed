// What Kvm::Open says where /dev/kvm is not what it should be. Needs no KVM.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <set>
#include <string>

#include "vmm/base/unique_fd.h"
#include "vmm/kvm/exit_names.h"
#include "vmm/kvm/kvm.h"

namespace sipi {
namespace {

// A regular file that goes with the object.
class TempFile {
 public:
  TempFile() : fd_(mkstemp(path_)) {}
  ~TempFile() { unlink(path_); }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  const char* path() const { return path_; }

 private:
  char path_[32] = "/tmp/sipi-kvm-XXXXXX";
  UniqueFd fd_;
};

// Opens a file that nobody may open, without root's privilege if the test runs as root.
absl::Status OpenWithoutPermission() {
  const TempFile file;
  EXPECT_EQ(chmod(file.path(), 0), 0);
  constexpr uid_t kNobody = 65534;
  const bool root = geteuid() == 0;
  EXPECT_EQ(root ? seteuid(kNobody) : 0, 0);
  absl::Status status = Kvm::Open({.path = file.path(), .hook = nullptr}).status();
  EXPECT_EQ(root ? seteuid(0) : 0, 0);
  return status;
}

absl::Status OpenPath(const std::string& path) {
  return Kvm::Open({.path = path, .hook = nullptr}).status();
}

TEST(KvmOpen, MissingDevice) {
  EXPECT_EQ(KvmProblemOf(OpenPath("/nonexistent/kvm")), KvmProblem::kMissing);
}

TEST(KvmOpen, DeviceThatMayNotBeOpened) {
  EXPECT_EQ(KvmProblemOf(OpenWithoutPermission()), KvmProblem::kNotPermitted);
}

TEST(KvmOpen, RegularFileInItsPlace) {
  const TempFile file;
  EXPECT_EQ(KvmProblemOf(OpenPath(file.path())), KvmProblem::kNotKvm);
}

TEST(KvmOpen, NullDeviceInItsPlace) {
  EXPECT_EQ(KvmProblemOf(OpenPath("/dev/null")), KvmProblem::kNotKvm);
}

TEST(KvmOpen, DirectoryInItsPlace) {
  EXPECT_EQ(KvmProblemOf(OpenPath("/tmp")), KvmProblem::kOther);
}

TEST(KvmOpen, EachProblemNamesThePathAndHasItsOwnRemedy) {
  const absl::Status missing = OpenPath("/nonexistent/kvm");
  EXPECT_EQ(missing.message().substr(0, 21), "open /nonexistent/kvm");
  const absl::Status not_kvm = OpenPath("/dev/null");
  EXPECT_NE(std::string(not_kvm.message()).find("/dev/null is not KVM"), std::string::npos);
  std::set<std::string> remedies;
  for (const absl::Status& status : {missing, not_kvm, OpenWithoutPermission()}) {
    const std::string text(status.message());
    ASSERT_NE(text.find("; "), std::string::npos) << text;
    remedies.insert(text.substr(text.find("; ")));
  }
  EXPECT_EQ(remedies.size(), 3u);
}

TEST(KvmOpen, StatusThatIsNotAboutKvmHasNoProblem) {
  EXPECT_EQ(KvmProblemOf(absl::OkStatus()), KvmProblem::kNone);
  EXPECT_EQ(KvmProblemOf(absl::NotFoundError("a file")), KvmProblem::kNone);
}

TEST(ExitNames, KnownAndUnknownReasons) {
  EXPECT_STREQ(ExitReasonName(KVM_EXIT_FAIL_ENTRY), "KVM_EXIT_FAIL_ENTRY");
  EXPECT_STREQ(ExitReasonName(KVM_EXIT_X86_WRMSR), "KVM_EXIT_X86_WRMSR");
  EXPECT_STREQ(ExitReasonName(KVM_EXIT_NOTIFY), "KVM_EXIT_NOTIFY");
  EXPECT_STREQ(ExitReasonName(39), "KVM_EXIT_MEMORY_FAULT");  // newer than Debian 12's headers
  EXPECT_STREQ(ExitReasonName(41), "unknown exit reason");
}

TEST(ExitNames, InternalErrorsOneToFour) {
  EXPECT_STREQ(InternalErrorName(1), "emulation failure");
  EXPECT_STREQ(InternalErrorName(2), "simultaneous exceptions");
  EXPECT_STREQ(InternalErrorName(3), "exit during the delivery of an event");
  EXPECT_STREQ(InternalErrorName(4), "unexpected hardware exit reason");
  EXPECT_STREQ(InternalErrorName(5), "unknown internal error");
}

// In C++ the headers of Linux 6.1 give other numbers; see vmm/kvm/linux_kvm.h.
TEST(LinuxKvm, IoctlsOnFlexibleArraysHaveKvmsNumbers) {
  EXPECT_EQ(KVM_GET_MSRS, 0xc008ae88u);
  EXPECT_EQ(KVM_SET_MSRS, 0x4008ae89u);
  EXPECT_EQ(KVM_GET_SUPPORTED_CPUID, 0xc008ae05u);
  EXPECT_EQ(KVM_SET_CPUID2, 0x4008ae90u);
  EXPECT_EQ(KVM_SET_SIGNAL_MASK, 0x4004ae8bu);
}

}  // namespace
}  // namespace sipi
