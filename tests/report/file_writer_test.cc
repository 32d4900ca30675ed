#include "vmm/report/file_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace sipi {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

class FileWriterTest : public testing::Test {
 protected:
  FileWriterTest() {
    std::string name = testing::TempDir() + "/sipi_file_writer_" + std::string(6, 'X');
    dir_ = mkdtemp(name.data());
  }
  ~FileWriterTest() override { fs::remove_all(dir_); }

  std::string Path(const char* name) const { return dir_ + "/" + name; }
  static std::string Read(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  size_t FilesInDir() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(dir_), fs::directory_iterator()));
  }

  std::string dir_;
};

TEST_F(FileWriterTest, WritesANewFileAndLeavesNothingElse) {
  ASSERT_TRUE(WriteResultFile(Path("a.json"), "hello\n").ok());
  EXPECT_EQ(Read(Path("a.json")), "hello\n");
  EXPECT_EQ(FilesInDir(), 1u);
}

TEST_F(FileWriterTest, ReplacesAFileAndKeepsItsPermissions) {
  std::ofstream(Path("a.json")) << "a much longer text than the new one";
  ASSERT_EQ(chmod(Path("a.json").c_str(), 0640), 0);
  ASSERT_TRUE(WriteResultFile(Path("a.json"), "new").ok());
  EXPECT_EQ(Read(Path("a.json")), "new");
  struct stat info = {};
  ASSERT_EQ(stat(Path("a.json").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
}

TEST_F(FileWriterTest, FollowsASymbolicLinkToAFileThatIsNotThereYet) {
  fs::create_symlink("real.json", Path("one.json"));
  fs::create_symlink(Path("one.json"), Path("two.json"));
  ASSERT_TRUE(WriteResultFile(Path("two.json"), "new").ok());
  EXPECT_TRUE(fs::is_symlink(Path("one.json")));
  EXPECT_TRUE(fs::is_symlink(Path("two.json")));
  EXPECT_EQ(fs::file_size(Path("real.json")), 3u);
  fs::create_symlink("nowhere/real.json", Path("lost.json"));
  EXPECT_FALSE(WriteResultFile(Path("lost.json"), "new").ok());
  EXPECT_TRUE(fs::is_symlink(Path("lost.json")));
}

TEST_F(FileWriterTest, FollowsASymbolicLink) {
  std::ofstream(Path("real.json")) << "old";
  fs::create_symlink("real.json", Path("link.json"));
  ASSERT_TRUE(WriteResultFile(Path("link.json"), "new").ok());
  EXPECT_TRUE(fs::is_symlink(Path("link.json")));
  EXPECT_EQ(Read(Path("real.json")), "new");
}

TEST_F(FileWriterTest, WritesToADeviceInPlace) {
  ASSERT_TRUE(WriteResultFile("/dev/null", "gone").ok());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(FileWriterTest, FullDeviceIsAnErrorThatNamesFlagAndFile) {
  const absl::Status status = WriteResultFile("/dev/full", "x", "--json");
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("--json: /dev/full"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("No space left"));
}

TEST_F(FileWriterTest, MissingDirectoryIsAnErrorThatNamesTheFile) {
  const absl::Status status = WriteResultFile(Path("no/a.json"), "x", "--trace");
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("--trace: " + Path("no/a.json")));
  EXPECT_THAT(std::string(status.message()), HasSubstr("directory that can be written"));
}

TEST_F(FileWriterTest, DirectoryInPlaceOfAFileIsRefused) {
  const absl::Status status = WriteResultFile(dir_, "x");
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("is a directory"));
  EXPECT_EQ(FilesInDir(), 0u);
}

TEST_F(FileWriterTest, CheckSaysBeforehandWhatWouldFail) {
  EXPECT_TRUE(CheckResultFile("-").ok());
  EXPECT_TRUE(CheckResultFile("/dev/null").ok());
  EXPECT_TRUE(CheckResultFile(Path("new.json")).ok());
  EXPECT_FALSE(CheckResultFile(Path("no/new.json")).ok());
  EXPECT_FALSE(CheckResultFile(dir_).ok());
  EXPECT_FALSE(CheckResultFile("").ok());
  EXPECT_EQ(FilesInDir(), 0u);  // and it changed nothing
}

}  // namespace
}  // namespace sipi
