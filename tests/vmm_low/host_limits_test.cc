#include "vmm/cpu/host_limits.h"

#include <gtest/gtest.h>

#include <string>

namespace sipi {
namespace {

constexpr uint32_t kMaxVcpus = 1024;
constexpr uint32_t kMaxVcpuIds = 4096;
constexpr uint32_t kRecommended = 2;

absl::StatusOr<std::string> Check(const Topology& topology) {
  return CheckHostLimits(topology, kMaxVcpus, kMaxVcpuIds, kRecommended);
}

bool Contains(const absl::Status& status, const std::string& text) {
  return std::string(status.message()).find(text) != std::string::npos;
}

TEST(HostLimits, WithinTheRecommendedNumberThereIsNothingToSay) {
  EXPECT_EQ(*Check(FlatTopology(1)), "");
  EXPECT_EQ(*Check(FlatTopology(2)), "");
}

TEST(HostLimits, AboveTheRecommendedNumberIsANote) {
  EXPECT_EQ(Check(FlatTopology(3))->substr(0, 7), "3 vCPUs");
  EXPECT_TRUE(Check(FlatTopology(kMaxVcpus)).ok());
}

TEST(HostLimits, OneCpuTooManyNamesTheCountLimit) {
  const absl::Status status = Check(FlatTopology(kMaxVcpus + 1)).status();
  EXPECT_TRUE(Contains(status, "1025")) << status;
  EXPECT_TRUE(Contains(status, "1024 vCPUs")) << status;
  EXPECT_TRUE(Contains(status, "KVM_CAP_MAX_VCPUS")) << status;
}

TEST(HostLimits, AbsurdCountsAreRefusedBeforeATopologyIsMade) {
  EXPECT_TRUE(Contains(CheckCpuCount(99999999999, kMaxVcpus), "99999999999"));
  EXPECT_TRUE(Contains(CheckCpuCount(0, kMaxVcpus), "1 to 1024"));
  EXPECT_TRUE(CheckCpuCount(1, kMaxVcpus).ok());
}

TEST(HostLimits, ApicIdTooHighNamesTheIdLimit) {
  Topology topology = FlatTopology(2);
  ASSERT_TRUE(SetApicIds("0,4095", topology).ok());
  EXPECT_TRUE(Check(topology).ok());
  ASSERT_TRUE(SetApicIds("0,4096", topology).ok());
  const absl::Status status = Check(topology).status();
  EXPECT_TRUE(Contains(status, "APIC ID is 4096")) << status;
  EXPECT_TRUE(Contains(status, "up to 4095")) << status;
  EXPECT_TRUE(Contains(status, "KVM_CAP_MAX_VCPU_ID")) << status;
}

TEST(HostLimits, GapsOfATopologyMayPassTheIdLimit) {
  // 3 bits of stride, 1 of threads, 5 of cores: the last of 12 sockets begins at 11 << 9 = 5632.
  const auto topology = ParseTopology("sockets=12,cores=17,threads=2,stride=8", 0);
  ASSERT_TRUE(topology.ok()) << topology.status();
  EXPECT_FALSE(Check(*topology).ok());
}

TEST(ApicMode, XApicReaches255CpusWithIdsUpTo254) {
  EXPECT_TRUE(CheckApicMode(FlatTopology(255), abi::ApicMode::kXApic).ok());
  EXPECT_TRUE(Contains(CheckApicMode(FlatTopology(256), abi::ApicMode::kXApic), "255"));
  EXPECT_TRUE(CheckApicMode(FlatTopology(256), abi::ApicMode::kX2Apic).ok());
}

}  // namespace
}  // namespace sipi
