// Each rule finds a planted fault, and lets right code pass: a rule that never fires would look
// like a clean tree.
#include "tests/tidy/checks.h"

#include <gtest/gtest.h>

namespace sipi::tidy {
namespace {

SourceFile File(const std::string& path, std::vector<std::string> lines) {
  return {path, std::move(lines)};
}

TEST(Columns, CountsCodePointsNotBytes) {
  const std::string hundred_umlauts = [] {
    std::string line;
    for (int i = 0; i < 100; ++i) line += "\xc3\xa4";
    return line;
  }();
  EXPECT_TRUE(CheckColumns(File("a.cc", {hundred_umlauts})).empty());
  EXPECT_EQ(CheckColumns(File("a.cc", {hundred_umlauts + "x"})),
            Findings{"a.cc:1: 101 columns, at most 100"});
}

TEST(FileLength, Allows400LinesAndNoMore) {
  EXPECT_TRUE(CheckFileLength(File("a.cc", std::vector<std::string>(400))).empty());
  EXPECT_EQ(CheckFileLength(File("a.cc", std::vector<std::string>(401))).size(), 1u);
}

TEST(FunctionLength, MeasuresToTheBraceOfTheSameIndentation) {
  std::vector<std::string> lines = {"namespace a {", "void F() {"};
  lines.insert(lines.end(), 69, "  G();");
  lines.push_back("}");
  lines.push_back("}  // namespace a");
  EXPECT_TRUE(CheckFunctionLength(File("a.cc", lines)).empty());
  lines.insert(lines.begin() + 2, "  G();");
  EXPECT_EQ(CheckFunctionLength(File("a.cc", lines)),
            Findings{"a.cc:2: a body of 71 lines, at most 70"});
}

TEST(FunctionLength, KnowsASignatureOverTwoLines) {
  std::vector<std::string> lines = {"int F(int a,", "      int b) {"};
  lines.insert(lines.end(), 69, "  G();");
  lines.push_back("}");
  lines.insert(lines.end(), 100, "int x;");
  EXPECT_TRUE(CheckFunctionLength(File("a.cc", lines)).empty());
}

TEST(FunctionLength, LetsTablesBe) {
  std::vector<std::string> lines = {"constexpr int kTable[] = {"};
  lines.insert(lines.end(), 200, "    1,");
  lines.push_back("};");
  EXPECT_TRUE(CheckFunctionLength(File("a.cc", lines)).empty());
}

TEST(Includes, KernelSeesThePlatformOnlyThroughItsHeader) {
  EXPECT_TRUE(
      CheckIncludes(File("guest/kernel/a.cc", {"#include \"guest/platform/platform.h\""})).empty());
  EXPECT_EQ(CheckIncludes(File("guest/kernel/a.cc", {"#include \"guest/platform/x86/machine.h\""})),
            Findings{"guest/kernel/a.cc:1: must not include guest/platform/x86/machine.h"});
}

TEST(Includes, VmmNeverSeesTheGuestKernel) {
  EXPECT_EQ(CheckIncludes(File("vmm/load/a.cc", {"#include \"guest/kernel/kernel.h\""})).size(),
            1u);
  EXPECT_TRUE(CheckIncludes(File("vmm/load/a.cc", {"#include \"guest/abi/layout.h\""})).empty());
}

TEST(Includes, ApicUsesTheStandardLibraryOnly) {
  EXPECT_TRUE(CheckIncludes(File("apic/model/a.cc", {"#include <vector>"})).empty());
  EXPECT_EQ(CheckIncludes(File("apic/model/a.cc", {"#include \"absl/status/status.h\""})).size(),
            1u);
  EXPECT_EQ(CheckIncludes(File("apic/model/a.cc", {"#include <thread>"})).size(), 1u);
  EXPECT_EQ(CheckIncludes(File("apic/model/a.cc", {"#include <linux/kvm.h>"})).size(), 1u);
  EXPECT_EQ(CheckIncludes(File("apic/regs/a.h", {"#include \"apic/model/local_apic.h\""})).size(),
            1u);
}

TEST(Includes, OnlyVmmKvmCallsIoctl) {
  EXPECT_TRUE(CheckIncludes(File("vmm/kvm/ioctl.cc", {"#include <sys/ioctl.h>"})).empty());
  EXPECT_EQ(CheckIncludes(File("vmm/vcpu/a.cc", {"#include <sys/ioctl.h>"})).size(), 1u);
}

TEST(Waits, FindsABarePauseLoopInTheKernelOnly) {
  const std::vector<std::string> loop = {"  while (!done) Pause();"};
  EXPECT_EQ(CheckWaits(File("guest/kernel/a.cc", loop)).size(), 1u);
  EXPECT_EQ(CheckWaits(File("guest/scenario/a.cc", loop)).size(), 1u);
  EXPECT_TRUE(CheckWaits(File("guest/platform/x86/a.h", loop)).empty());
  EXPECT_TRUE(CheckWaits(File("guest/kernel/a.cc", {"  // a bare Pause() is a fault"})).empty());
}

TEST(Includes, VmmSeesTheSimulatorsPublicHeaderOnly) {
  const auto vmm = [](const char* line) { return CheckIncludes(File("vmm/machine/a.cc", {line})); };
  EXPECT_TRUE(vmm("#include \"guest/platform/sim/simulator.h\"").empty());
  EXPECT_EQ(vmm("#include \"guest/platform/sim/machine.h\"").size(), 1u);
  EXPECT_EQ(
      CheckIncludes(File("guest/platform/sim/simulator.h", {"#include \"guest/kernel/kernel.h\""}))
          .size(),
      1u);
}

TEST(Determinism, FindsClocksAndFloatsInTheSimulatorOnly) {
  for (const char* line : {"  double ns = 0;", "#include <chrono>",
                           "  std::unordered_map<int, int> m;", "thread_local int x;"}) {
    EXPECT_EQ(CheckDeterminism(File("guest/platform/sim/a.cc", {line})).size(), 1u) << line;
    EXPECT_TRUE(CheckDeterminism(File("vmm/report/a.cc", {line})).empty());
  }
  EXPECT_TRUE(
      CheckDeterminism(File("guest/platform/sim/a.cc", {"  cpu.now_ns = time_ns;"})).empty());
}

TEST(Conditionals, GuestHasNone) {
  EXPECT_EQ(CheckConditionals(File("guest/kernel/a.h", {"#ifdef DEBUG"})).size(), 1u);
  EXPECT_TRUE(CheckConditionals(File("vmm/kvm/a.h", {"#ifndef KVM_CAP_VM_TYPES"})).empty());
  EXPECT_EQ(CheckConditionals(File("vmm/kvm/a.h", {"#if defined(__x86_64__)"})).size(), 1u);
}

TEST(Conditionals, NobodyAsksOneCompilerForSanitizers) {
  const std::string line = "#if defined(__SANITIZE_ADDRESS__)";
  EXPECT_EQ(CheckConditionals(File("vmm/vcpu/a.cc", {line})).size(), 1u);
  EXPECT_TRUE(CheckConditionals(File("tests/support/sanitized.h", {line})).empty());
}

TEST(Leftovers, AreFoundInComments) {
  EXPECT_EQ(CheckLeftovers(File("a.cc", {std::string("// TO") + "DO: later"})).size(), 1u);
  EXPECT_TRUE(CheckLeftovers(File("a.cc", {"// done"})).empty());
}

TEST(Formats, HaveEveryKeyAndCounter) {
  const std::string formats = "| `ns`, `cpu` | `sim.steals` | `exits.*` |";
  const auto in = [&formats](const char* path, const char* line) {
    return CheckFormats(File(path, {line}), formats).size();
  };
  EXPECT_EQ(in("vmm/report/a.cc", "  json.Field(\"ns\", each.ns);"), 0u);
  EXPECT_EQ(in("vmm/report/a.cc", "  json.Field(\"us\", each.ns);"), 1u);
  EXPECT_EQ(in("vmm/report/a.cc", "  json.Field(up ? \"cpu\" : \"core\", number);"), 1u);
  EXPECT_EQ(in("vmm/report/a.cc", "  WriteNumbers(json, \"pipe\", c.pipe);"), 1u);
  EXPECT_EQ(in("vmm/report/a.cc", "JsonWriter json; {\"reads\", c.reads},"), 1u);
  EXPECT_EQ(in("vmm/report/a.cc", "  text = \"words\";"), 0u);
  EXPECT_EQ(in("vmm/machine/a.cc", "  {\"sim.steals\", stats.steals},"), 0u);
  EXPECT_EQ(in("vmm/machine/a.cc", "  {\"sim.other\", stats.other},"), 1u);
  EXPECT_EQ(in("vmm/vcpu/a.cc", "  counters[\"yields\"] += yields;"), 1u);
  EXPECT_EQ(in("vmm/vcpu/a.cc", "      return \"exits.hlt\";"), 0u);
  EXPECT_EQ(in("tests/a.cc", "  json.Field(\"us\", each.ns);"), 0u);
}

TEST(Header, NeedsPragmaOnce) {
  EXPECT_EQ(CheckHeader(File("a.h", {"int x;"})).size(), 1u);
  EXPECT_TRUE(CheckHeader(File("a.h", {"// A.", "#pragma once"})).empty());
}

TEST(Built, NeedsTheWholeName) {
  EXPECT_TRUE(CheckBuilt(File("vmm/cli/main.cc", {}), "executable('sipi', 'cli/main.cc')").empty());
  EXPECT_TRUE(CheckBuilt(File("vmm/base/a.cc", {}), "'a.cc'").empty());
  EXPECT_EQ(CheckBuilt(File("vmm/base/a.cc", {}), "'extra.cc', 'aa.cc'").size(), 1u);
}

}  // namespace
}  // namespace sipi::tidy
