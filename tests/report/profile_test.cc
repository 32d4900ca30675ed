#include "vmm/profile/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "vmm/cpu/topology.h"

namespace sipi {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string ErrorOf(absl::string_view json) {
  const absl::StatusOr<Profile> profile = ParseProfile(json, "my.json");
  if (profile.ok()) return "no error";
  EXPECT_EQ(profile.status().code(), absl::StatusCode::kInvalidArgument);
  const std::string message(profile.status().message());
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  return message;
}

TEST(Profile, BuiltInOnesLoadUnderTheirNames) {
  EXPECT_THAT(BuiltinProfileNames(), ElementsAre("native", "haswell-28", "skylake-96", "server-128",
                                                 "ppc64-400", "ppc64-960", "ppc64-1920"));
  for (const std::string& name : BuiltinProfileNames()) {
    const absl::StatusOr<Profile> profile = LoadProfile(name);
    ASSERT_TRUE(profile.ok()) << profile.status();
    EXPECT_EQ(profile->name, name);
    EXPECT_FALSE(profile->description.empty());
    EXPECT_EQ(profile->imposes_anything(), name != "native");
  }
}

TEST(Profile, BuiltInTopologiesHaveTheMachinesCpus) {
  for (const auto& [name, cpus, sockets] :
       {std::tuple("haswell-28", 28u, 1u), {"skylake-96", 96u, 2u}, {"server-128", 128u, 2u}}) {
    const absl::StatusOr<Profile> profile = LoadProfile(name);
    ASSERT_TRUE(profile.ok());
    EXPECT_EQ(profile->cpus, cpus);
    const absl::StatusOr<Topology> topology = ParseTopology(profile->topology, profile->cpus);
    ASSERT_TRUE(topology.ok()) << topology.status();
    EXPECT_EQ(topology->cpu_count(), cpus);
    EXPECT_EQ(topology->sockets, sockets);
    EXPECT_EQ(topology->threads_per_core, 2u);
    EXPECT_EQ(topology->places[1].thread, 0u);  // primaries come first
  }
}

// What docs/profiles.md says each profile implies, by the same arithmetic: imposed latencies, the
// guest's calibration window, and the 40 us of delays in each INIT/SIPI/SIPI sequence.
struct Totals {
  double serial_ms;
  double kick_ms;
  double kick_reuse_ms;
};
Totals Implied(const std::string& name) {
  const Profile p = LoadProfile(name).value();
  const double aps = p.cpus - 1;
  const auto start = static_cast<double>(p.init.ns + p.startup.ns + p.microcode.ns);
  const auto calibration = static_cast<double>(p.calibration_ns);
  const double rest =
      40e3 + static_cast<double>(p.cache_setup.ns + p.identify.ns + p.online_steps.ns);
  return {.serial_ms = aps * (start + calibration + rest) / 1e6,
          .kick_ms = (start + aps * (calibration + rest)) / 1e6,
          .kick_reuse_ms = (start + aps * rest) / 1e6};
}

TEST(Profile, BuiltInOnesImplyTheTotalsThatTheDocumentStates) {
  const Totals server = Implied("server-128");
  EXPECT_NEAR(server.serial_ms, 694.7, 0.1);
  EXPECT_NEAR(server.kick_ms, 102.5, 0.1);
  EXPECT_NEAR(server.kick_reuse_ms, 32.6, 0.1);
  const Totals skylake = Implied("skylake-96");
  EXPECT_NEAR(skylake.serial_ms, 472.2, 0.1);
  EXPECT_NEAR(skylake.kick_ms, 77.4, 0.1);
  const Totals haswell = Implied("haswell-28");
  EXPECT_NEAR(haswell.serial_ms, 119.1, 0.1);
  EXPECT_NEAR(haswell.kick_ms, 80.1, 0.1);
}

TEST(Profile, ReadsEveryKey) {
  const absl::StatusOr<Profile> p = ParseProfile(R"({
    "schema": "sipi.profile/1", "name": "mine", "description": "d", "cpus": 8,
    "topology": "sockets=2,cores=2,threads=2",
    "init": 10, "startup": {"us": 500, "jitter_us": 2.5}, "microcode": {"us": 8000},
    "cache_setup": 1.5, "identify": 60, "online_steps": 120, "ipi": 1,
    "calibration_us": 550, "init_delay_us": 10000, "tick_hz": 1000, "sched_domains": 9,
    "hotplug_steps": "pseries", "preempt": "lazy", "rcu_flavour": "non-preemptible",
    "kernel_busy": 2})",
                                                 "mine");
  ASSERT_TRUE(p.ok()) << p.status();
  EXPECT_EQ(p->name, "mine");
  EXPECT_EQ(p->description, "d");
  EXPECT_EQ(p->cpus, 8u);
  EXPECT_EQ(p->topology, "sockets=2,cores=2,threads=2");
  EXPECT_EQ(p->init.ns, 10'000);
  EXPECT_EQ(p->startup.ns, 500'000);
  EXPECT_EQ(p->startup.jitter_ns, 2'500);
  EXPECT_EQ(p->microcode.ns, 8'000'000);
  EXPECT_EQ(p->cache_setup.ns, 1'500);
  EXPECT_EQ(p->identify.ns, 60'000);
  EXPECT_EQ(p->online_steps.ns, 120'000);
  EXPECT_EQ(p->ipi.ns, 1'000);
  EXPECT_EQ(p->calibration_ns, 550'000);
  EXPECT_EQ(p->init_delay_us, 10'000);
  EXPECT_EQ(p->tick_hz, 1'000u);
  EXPECT_EQ(p->sched_domains.ns, 9'000);
  EXPECT_EQ(p->hotplug_steps, abi::HotplugSteps::kPseries);
  EXPECT_EQ(p->preemption, abi::Preemption::kLazy);
  EXPECT_EQ(p->rcu_flavour, abi::RcuFlavour::kNonPreemptible);
  EXPECT_EQ(p->kernel_busy, 2u);
}

TEST(Profile, EmptyObjectImposesNothing) {
  const absl::StatusOr<Profile> p = ParseProfile("{}", "my.json");
  ASSERT_TRUE(p.ok());
  EXPECT_FALSE(p->imposes_anything());
  EXPECT_EQ(p->name, "my.json");
}

TEST(Profile, UnknownKeysAreNamedWithThoseThatThereAre) {
  EXPECT_THAT(ErrorOf(R"({"start_up": 5})"),
              HasSubstr("my.json: \"start_up\" is unknown; the keys are schema, name,"));
  EXPECT_EQ(ErrorOf(R"({"startup": {"us": 5, "jitter": 1}})"),
            "my.json: \"startup.jitter\" is unknown; a latency has us and jitter_us");
}

TEST(Profile, WrongValuesAreNamedWithTheirKey) {
  EXPECT_EQ(ErrorOf(R"({"startup": -1})"),
            "my.json: \"startup\" is negative; give 0 for a latency that is not to be imposed");
  EXPECT_EQ(ErrorOf(R"({"startup": "5"})"),
            "my.json: \"startup\" must be microseconds or {\"us\": ..., \"jitter_us\": ...}");
  EXPECT_EQ(ErrorOf(R"({"startup": {"us": true}})"),
            "my.json: \"startup.us\" must be a number of microseconds");
  EXPECT_EQ(ErrorOf(R"({"startup": {"jitter_us": 1}})"),
            "my.json: \"startup\" has no \"us\"; give its median in microseconds");
  EXPECT_EQ(ErrorOf(R"({"startup": {"us": 5, "jitter_us": 6}})"),
            "my.json: \"startup\" has more jitter than its median, so it could become negative; "
            "give less");
  EXPECT_EQ(ErrorOf(R"({"startup": 1e300})"),
            "my.json: \"startup\" is above 10000000 us; give less");
  EXPECT_EQ(ErrorOf(R"({"calibration_us": 4000001})"),
            "my.json: \"calibration_us\" is above 4000000 us; give less: the clock that the window "
            "is measured by has 24 bits, and begins anew after 4.69 s");
  EXPECT_EQ(ErrorOf(R"({"calibration_us": 4000000})"), "no error");
  EXPECT_EQ(ErrorOf(R"({"tick_hz": 0})"),
            "my.json: \"tick_hz\" must be a whole number from 1 to 10000");
  EXPECT_EQ(ErrorOf(R"({"tick_hz": 2.5})"),
            "my.json: \"tick_hz\" must be a whole number from 1 to 10000");
  EXPECT_EQ(ErrorOf(R"({"cpus": 18446744073709551615})"),
            "my.json: \"cpus\" must be a whole number from 0 to 65536");
  EXPECT_EQ(ErrorOf(R"({"preempt": "some"})"),
            "my.json: \"preempt\" must be \"none\" or \"voluntary\" or \"full\" or \"lazy\"");
  EXPECT_EQ(ErrorOf(R"({"rcu_flavour": 1})"), "my.json: \"rcu_flavour\" must be a string");
  EXPECT_EQ(ErrorOf(R"({"hotplug_steps": "arm"})"),
            "my.json: \"hotplug_steps\" must be \"x86\" or \"pseries\"");
  EXPECT_EQ(ErrorOf(R"({"kernel_busy": -1})"),
            "my.json: \"kernel_busy\" must be a whole number from 0 to 65536");
  EXPECT_EQ(ErrorOf(R"({"name": 5})"), "my.json: \"name\" must be a string");
  EXPECT_EQ(ErrorOf(R"({"schema": "sipi.run/1"})"),
            "my.json: \"schema\" must be \"sipi.profile/1\"");
  EXPECT_THAT(ErrorOf(R"({"topology": "sockets=zwei"})"),
              HasSubstr("my.json: \"topology\" is wrong: "));
}

TEST(Profile, KeyThatStandsTwiceIsRefused) {
  EXPECT_EQ(ErrorOf(R"({"startup": 5, "ipi": 1, "startup": 6})"),
            "my.json: key \"startup\" stands twice; keep one");
  EXPECT_EQ(ErrorOf(R"({"startup": {"us": 1, "us": 2}})"),
            "my.json: key \"us\" stands twice; keep one");
  EXPECT_EQ(ErrorOf(R"({"init": {"us": 1}, "startup": {"us": 2}})"), "no error");
}

TEST(Profile, SyntaxErrorsAreNamedWithLineAndByte) {
  EXPECT_EQ(
      ErrorOf("{\n  \"startup\": 5,\n  bad\n}"),
      "my.json: malformed JSON at line 3, column 3 (byte 21); docs/profiles.md shows the form");
  EXPECT_THAT(ErrorOf(""), HasSubstr("my.json: malformed JSON at line 1, column 1 (byte 1)"));
  EXPECT_THAT(ErrorOf("{\"startup\": 5"), HasSubstr("malformed JSON at line 1"));
  EXPECT_THAT(ErrorOf("{\"name\": \"\xff\"}"), HasSubstr("malformed JSON"));
  EXPECT_EQ(ErrorOf("[1]"), "my.json: must hold one JSON object; docs/profiles.md shows the form");
}

TEST(Profile, DeepNestingIsAnErrorNotACrash) {
  EXPECT_THAT(ErrorOf(std::string(500'000, '[')), HasSubstr("malformed JSON"));
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_THAT(ErrorOf("{\"startup\":" + deep + "}"), HasSubstr("\"startup\" must be"));
}

TEST(Profile, UnknownNameListsTheNames) {
  const absl::Status status = LoadProfile("skylake").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(),
            "there is no profile \"skylake\"; choose one of native, haswell-28, skylake-96, "
            "server-128, ppc64-400, ppc64-960, ppc64-1920, or name a file that ends in .json");
}

TEST(Profile, FilesAreNamedInErrors) {
  EXPECT_THAT(std::string(LoadProfile("/nonexistent/p.json").status().message()),
              HasSubstr("/nonexistent/p.json"));
  EXPECT_THAT(std::string(LoadProfile("/tmp/").status().message()), HasSubstr("/tmp/"));
  EXPECT_THAT(std::string(LoadProfile("/dev/zero").status().message()),
              HasSubstr("/dev/zero: is not a regular file"));
}

TEST(Profile, FilesOutOfAllProportionAreRefused) {
  const std::string path = testing::TempDir() + "/sipi_profile_too_long.json";
  std::ofstream(path) << std::string((size_t{1} << 20) + 1, ' ');
  EXPECT_THAT(std::string(LoadProfile(path).status().message()),
              HasSubstr(path + ": is longer than 1048576 bytes"));
  std::remove(path.c_str());
}

TEST(Profile, FileIsRead) {
  const std::string path = testing::TempDir() + "/sipi_profile_test.json";
  std::ofstream(path) << R"({"name": "mine", "startup": 350})";
  const absl::StatusOr<Profile> profile = LoadProfile(path);
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(profile->startup.ns, 350'000);
  std::remove(path.c_str());
}

}  // namespace
}  // namespace sipi
