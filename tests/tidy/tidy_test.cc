// The tree itself, against the rules of checks.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "tests/tidy/checks.h"

namespace sipi::tidy {
namespace {

namespace fs = std::filesystem;

const fs::path& Root() {
  static const fs::path root(SIPI_SOURCE_ROOT);
  return root;
}

std::string ReadAll(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

SourceFile Load(const fs::path& path) {
  SourceFile file{fs::relative(path, Root()).generic_string(), {}};
  std::istringstream text(ReadAll(path));
  for (std::string line; std::getline(text, line);) file.lines.push_back(line);
  return file;
}

// Every C++ source and header of the project.
const std::vector<SourceFile>& Sources() {
  static const std::vector<SourceFile> sources = [] {
    std::vector<SourceFile> files;
    for (const char* folder : {"apic", "guest", "vmm", "bench", "tests"}) {
      for (const auto& entry : fs::recursive_directory_iterator(Root() / folder)) {
        const fs::path extension = entry.path().extension();
        if (extension == ".cc" || extension == ".h") files.push_back(Load(entry.path()));
      }
    }
    return files;
  }();
  return sources;
}

// The text of meson.build in the folder of `path` and in every folder above it.
std::string MesonTextFor(const std::string& path) {
  std::string text;
  for (fs::path folder = (Root() / path).parent_path();; folder = folder.parent_path()) {
    text += ReadAll(folder / "meson.build");
    if (folder == Root()) return text;
  }
}

std::string AllFindings(const std::function<Findings(const SourceFile&)>& check) {
  std::string all;
  for (const SourceFile& file : Sources()) {
    for (const std::string& finding : check(file)) all += finding + "\n";
  }
  return all;
}

TEST(Tree, HasSources) { EXPECT_GT(Sources().size(), 50u); }
TEST(Tree, LinesAreAtMost100ColumnsWide) { EXPECT_EQ(AllFindings(CheckColumns), ""); }
TEST(Tree, FilesAreAtMost400LinesLong) { EXPECT_EQ(AllFindings(CheckFileLength), ""); }
TEST(Tree, FunctionsAreAtMost70LinesLong) { EXPECT_EQ(AllFindings(CheckFunctionLength), ""); }
TEST(Tree, FoldersIncludeOnlyWhatTheyMay) { EXPECT_EQ(AllFindings(CheckIncludes), ""); }
TEST(Tree, GuestKernelHasNoBareWaits) { EXPECT_EQ(AllFindings(CheckWaits), ""); }
TEST(Tree, SimulatorIsDeterministic) { EXPECT_EQ(AllFindings(CheckDeterminism), ""); }
TEST(Tree, PlatformIsNotChosenByThePreprocessor) { EXPECT_EQ(AllFindings(CheckConditionals), ""); }
TEST(Tree, NothingIsLeftForLater) { EXPECT_EQ(AllFindings(CheckLeftovers), ""); }
TEST(Tree, HeadersAreIncludedOnce) { EXPECT_EQ(AllFindings(CheckHeader), ""); }

TEST(Tree, WhatIsWrittenStandsInTheFormats) {
  const std::string formats = ReadAll(Root() / "docs/formats.md");
  EXPECT_EQ(AllFindings([&formats](const SourceFile& file) { return CheckFormats(file, formats); }),
            "");
}

TEST(Tree, EverySourceIsBuilt) {
  EXPECT_EQ(
      AllFindings([](const SourceFile& file) { return CheckBuilt(file, MesonTextFor(file.path)); }),
      "");
}

}  // namespace
}  // namespace sipi::tidy
