// Files that are no payload and flags that do not go with one: one line that names the flag, the
// file and the remedy, a status, and no file left behind.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/e2e/command.h"
#include "tests/e2e/guest_code.h"

namespace sipi::e2e {
namespace {

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

// Runs the command and expects status 2 and one line on stderr that holds each of `texts`.
void ExpectUsageError(std::vector<std::string> args, const std::vector<std::string>& texts) {
  const std::string result = TempPath("refused.json");
  args.insert(args.begin(), "run");
  args.push_back("--json=" + result);
  const Finished f = Sipi(args);
  EXPECT_EQ(f.status, 2) << f.err;
  EXPECT_EQ(f.out, "");
  EXPECT_EQ(std::count(f.err.begin(), f.err.end(), '\n'), 1) << f.err;
  for (const std::string& text : texts) EXPECT_NE(f.err.find(text), std::string::npos) << f.err;
  EXPECT_FALSE(Exists(result)) << "a result of a run that never was";
}

void ExpectBadImage(const std::string& bytes, const std::string& says) {
  const std::string path = FileWith(bytes);
  ExpectUsageError({"--payload=" + path}, {"--payload", path, says});
}

std::string Hello(Form form = Form::kMultiboot, uint64_t gpa = 0x100000) {
  return GuestImage(guest::hello, form, gpa);
}

// --- The file.

TEST(BadPayload, ThatIsNoFile) {
  const std::string missing = TempPath("missing");
  ExpectUsageError({"--payload=" + missing}, {"--payload", missing, "No such file"});
  ExpectUsageError({"--payload=/tmp"}, {"--payload", "/tmp", "not a regular file"});
  ExpectBadImage("", "empty");
}

TEST(BadPayload, ThatIsNoImage) {
  ExpectBadImage(std::string(5000, 'x'), "neither an ELF file nor");
  ExpectBadImage("#!/bin/sh\n", "neither an ELF file nor");
  ExpectBadImage(Hello(Form::kBare32), "without a multiboot header or a PVH note");
}

TEST(BadPayload, ThatIsCutShort) {
  const std::string image = Hello();
  for (const size_t bytes : {size_t{5}, size_t{20}, size_t{60}, size_t{0x210}, image.size() - 1}) {
    SCOPED_TRACE(bytes);
    ExpectBadImage(image.substr(0, bytes), "offset");
  }
}

TEST(BadPayload, ThatDoesNotFitIntoRam) {
  const std::string beyond = FileWith(Hello(Form::kMultiboot, 0x900'0000));
  ExpectUsageError({"--payload=" + beyond}, {"--payload", beyond, "memory"});
  const std::string file = FileWith(Hello());
  ExpectUsageError({"--payload=" + file, "--memory=1M"}, {"--payload", file, "memory"});
  ExpectUsageError({"--payload=" + file, "--memory=512K"}, {"--memory", "at least 1M"});
}

// --- The flags.

TEST(PayloadFlags, OfOurOwnGuestAreRefused) {
  const std::string payload = Payload(guest::hello);
  for (const char* flag :
       {"--strategy=full", "--driver=host", "--scenario=ipi-all", "--sipi-count=1",
        "--order=reverse", "--init-deassert", "--calibration-us=300", "--veto=vendor"}) {
    const std::string name = std::string(flag).substr(0, std::string(flag).find('='));
    ExpectUsageError({payload, flag}, {name, "--payload"});
  }
}

TEST(PayloadFlags, NeedAPayload) {
  ExpectUsageError({"--append=x"}, {"--append", "--payload"});
  ExpectUsageError({"--env=A=B"}, {"--env", "--payload"});
}

TEST(PayloadFlags, AreChecked) {
  const std::string payload = Payload(guest::hello);
  ExpectUsageError({payload, "--env=AB"}, {"--env", "AB", "KEY=VALUE"});
  ExpectUsageError({payload, "--env==B"}, {"--env", "KEY=VALUE"});
  ExpectUsageError({payload, "--icr=amd"}, {"--icr", "amd"});
  ExpectUsageError({payload, "--hide=x2apik"}, {"--hide", "x2apik", "x2apic"});
  ExpectUsageError({payload, "--hide=x2apic", "--apic=x2apic"}, {"--hide", "--apic=xapic"});
}

}  // namespace
}  // namespace sipi::e2e
