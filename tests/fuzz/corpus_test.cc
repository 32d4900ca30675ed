// The fuzzer's seeds, replayed with any compiler, and that the fuzzer's rules can fail at all.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/apic_body.h"
#include "tests/fuzz/invariants.h"
#include "tests/fuzz/reference_routing.h"

namespace sipi::apic::fuzz {
namespace {

std::vector<std::filesystem::path> Corpus() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(SIPI_FUZZ_CORPUS)) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<uint8_t> BytesOf(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(ApicCorpusTest, NoSeedBreaksARule) {
  const std::vector<std::filesystem::path> files = Corpus();
  EXPECT_GE(files.size(), 26u);
  for (const auto& file : files) {
    const std::vector<uint8_t> bytes = BytesOf(file);
    ASSERT_FALSE(bytes.empty()) << file;
    EXPECT_EQ(RunApicInput(bytes), "") << file;
  }
}

// Every beginning of a seed is an input too: operands that end early read as 0.
TEST(ApicCorpusTest, NoBeginningOfASeedBreaksARule) {
  for (const auto& file : Corpus()) {
    const std::vector<uint8_t> bytes = BytesOf(file);
    for (size_t size = 0; size < bytes.size(); ++size) {
      ASSERT_EQ(RunApicInput({bytes.data(), size}), "") << file << " up to byte " << size;
    }
  }
}

// Without libFuzzer's feedback: seeds with some bytes changed, the same ones each time.
TEST(ApicCorpusTest, NoSeedWithChangedBytesBreaksARule) {
  std::mt19937 random(11);
  for (const auto& file : Corpus()) {
    const std::vector<uint8_t> seed = BytesOf(file);
    for (int round = 0; round < 100; ++round) {
      std::vector<uint8_t> bytes = seed;
      for (int i = 0; i < 4; ++i) bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
      ASSERT_EQ(RunApicInput(bytes), "") << file << " round " << round;
    }
  }
}

// --- The rules themselves can fail.

TEST(FuzzRuleTest, StaleDeadlineIsFound) {
  LocalApic apic(ApicId(0), true);
  (void)apic.WriteMmio(0x0f0, 0x1ff, Time{});
  (void)apic.WriteMmio(0x320, 0x000ef, Time{});
  (void)apic.WriteMmio(0x380, 1000, Time{});
  Finding known;
  CheckTimer(apic, Time{}, apic.NextDeadlineNs(Time{}), known);
  EXPECT_EQ(known.text(), "");
  Finding stale;
  CheckTimer(apic, Time{}, std::nullopt, stale);
  EXPECT_EQ(stale.text(), "step 0 (start): the deadline moved and no effect said so");
}

TEST(FuzzRuleTest, DeadlineThatWentAwayIsFound) {
  Finding finding;
  CheckTimer(LocalApic(ApicId(0), true), Time{}, 1000, finding);
  EXPECT_EQ(finding.text(), "step 0 (start): the deadline went away and no effect said so");
}

TEST(FuzzRuleTest, ForgottenIdIsFound) {
  Finding finding;
  CheckXApicId(LocalApic(ApicId(3), true), uint8_t{5}, Time{}, finding);
  EXPECT_EQ(finding.text(),
            "step 0 (start): the xAPIC ID is neither the written one nor the CPU's own");
}

TEST(FuzzRuleTest, SipiThatDoesNotCountIsFound) {
  Finding finding;
  CheckStartupWord({StartupWord::kSipiPending | StartupWord::kBsp}, finding);
  EXPECT_EQ(finding.text(), "step 0 (start): a SIPI is pending that does not count");
}

TEST(FuzzRuleTest, SenderThatParksATargetIsFound) {
  Finding finding;
  CheckPost({0}, {StartupWord::kWaitForSipi}, true, finding);
  EXPECT_EQ(finding.text(), "step 0 (start): a sender changed the target's own state");
}

TEST(FuzzRuleTest, LostInitIsFound) {
  Finding finding;
  CheckTake({StartupWord::kInitPending}, {0}, {}, finding);
  EXPECT_EQ(finding.text(), "step 0 (start): an INIT got lost or came twice");
}

TEST(FuzzRuleTest, RegistersOfAnotherProcessorAreFound) {
  LocalApic apic(ApicId(0), true, {.has_directed_eoi = true});
  (void)apic.WriteMmio(0x0f0, 0x11ff, Time{});
  Finding finding;
  CheckRegisters(apic, {}, Time{}, finding);
  EXPECT_EQ(finding.text(), "step 0 (start): a reserved bit of SVR reads as 1");
}

TEST(FuzzRuleTest, FirstFindingStays) {
  Finding finding;
  finding.At(3, "IPI");
  finding.Check(false, "one");
  finding.At(4, "EOI");
  finding.Check(false, "two");
  EXPECT_EQ(finding.text(), "step 3 (IPI): one");
}

TEST(FuzzRuleTest, ReferenceLeavesTheSenderOutOfAllButSelf) {
  LocalApic sender(ApicId(0), true);
  LocalApic other(ApicId(1), false);
  Icr icr;
  icr.mode = DeliveryMode::kInit;
  icr.shorthand = Shorthand::kAllExcludingSelf;
  EXPECT_FALSE(Reaches(icr, &sender, sender));
  EXPECT_TRUE(Reaches(icr, &sender, other));
}

TEST(FuzzRuleTest, ReferenceFindsAWrittenIdInXApicModeOnly) {
  LocalApic sender(ApicId(0), true);
  LocalApic target(ApicId(1), false);
  Icr icr;
  icr.mode = DeliveryMode::kInit;
  icr.dest = 5;
  EXPECT_TRUE(Reaches(icr, &sender, target, uint8_t{5}));
  icr.dest = 1;
  EXPECT_FALSE(Reaches(icr, &sender, target, uint8_t{5}));
  target.Reset(false, ApicMode::kX2Apic);
  EXPECT_TRUE(Reaches(icr, &sender, target, uint8_t{5}));
}

}  // namespace
}  // namespace sipi::apic::fuzz
