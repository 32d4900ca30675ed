// `sipi rcu torture` for a minute in each flavour: on vCPUs where there are any, else on simulated
// CPUs, as a user runs it. Two minutes in all; meson runs them beside the other tests.
#include <gtest/gtest.h>

#include <string>

#include "tests/e2e/command.h"

namespace sipi::e2e {
namespace {

using nlohmann::json;

void ExpectSuccess(const std::string& cpus, const std::string& flavour) {
  const std::string path = TempPath("torture.json");
  const std::string machine = KvmUsable() ? "kvm" : "sim";
  const Finished finished =
      Sipi({"rcu", "torture", "--machine=" + machine, "--cpus=" + cpus, "--seconds=60",
            "--rcu-flavour=" + flavour, "--rcu-fanout=2", "--rcu-fanout-leaf=2", "--json=" + path},
           {.timeout_s = 600});
  EXPECT_EQ(finished.status, 0) << finished.out << finished.err;
  EXPECT_TRUE(finished.out.ends_with("--- End of test: SUCCESS\n")) << finished.out;
  EXPECT_EQ(finished.out.find("has stalled"), std::string::npos) << finished.out;
  const std::string text = ReadWholeFile(path);
  ASSERT_TRUE(json::accept(text));
  const json file = json::parse(text);
  EXPECT_EQ(file["result"], "SUCCESS");
  EXPECT_EQ(file["seconds"], 60);
  EXPECT_GT(file["reads"], 0);
}

// A process each, so that they run side by side: meson.build names the filters.
TEST(TortureForAMinute, Preemptible) { ExpectSuccess("2", "preemptible"); }
TEST(TortureForAMinute, NonPreemptible) { ExpectSuccess("4", "non-preemptible"); }

}  // namespace
}  // namespace sipi::e2e
