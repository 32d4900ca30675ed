// The tree itself, against the rules of checks.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "guest/abi/cpuhp_state.h"
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

// docs/bringup.md lists the states that there are, each under its number and name, in their order.
TEST(Docs, StatesOfTheBringUpTableAreTheEnumeration) {
  std::istringstream text(ReadAll(Root() / "docs/bringup.md"));
  std::string listed;
  for (std::string line; std::getline(text, line);) {
    unsigned number = 0;
    char name[64] = {};
    if (std::sscanf(line.c_str(), "| %u | `%63[^`]` |", &number, name) != 2) continue;
    listed += std::to_string(number) + " " + name + "\n";
  }
  std::string known;
  for (uint32_t number = 0; number < 256; ++number) {
    const std::string name = abi::Name(static_cast<abi::CpuhpState>(number));
    if (name != "?") known += std::to_string(number) + " " + name + "\n";
  }
  EXPECT_EQ(listed, known);
}

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
