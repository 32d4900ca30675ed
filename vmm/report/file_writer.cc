#include "vmm/report/file_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "vmm/base/errno_status.h"
#include "vmm/base/status_macros.h"
#include "vmm/base/unique_fd.h"
#include "vmm/base/write_all.h"

namespace sipi {
namespace {

const char* RemedyFor(StandardOutput standard_output) {
  return standard_output == StandardOutput::kTaken
             ? "name a file in a directory that can be written, or - for standard output"
             : "name a file in a directory that can be written";
}

// A file that standard output was sent to must not be replaced under it.
bool IsStandardOutput(const std::string& path) { return path == "-" || path == "/dev/stdout"; }

// What the user has to be told in front of every error: "--json: /x/y.json".
std::string Subject(std::string_view flag, const std::string& path) {
  const std::string name = IsStandardOutput(path) ? "standard output" : path;
  return flag.empty() ? name : absl::StrCat(std::string(flag), ": ", name);
}

absl::Status WriteTo(int fd, std::string_view content, const std::string& subject) {
  const int error = WriteAll(fd, content);
  if (error == 0) return absl::OkStatus();
  return ErrnoStatus(error, absl::StrCat("cannot write to ", subject));
}

// Where the bytes go.
struct Target {
  std::string path;       // symbolic links followed
  bool in_place = false;  // exists and is no regular file: nothing to replace
  bool fifo = false;
};

absl::Status NobodyReads(const std::string& subject) {
  return absl::InvalidArgumentError(absl::StrCat(
      "cannot write to ", subject, ": nobody reads this FIFO; start its reader first"));
}

absl::StatusOr<Target> Resolve(const std::string& path, const std::string& subject,
                               const char* remedy) {
  if (path.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(subject, "no file is named; ", remedy));
  }
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) {
      std::error_code no_link;
      const std::filesystem::path next = std::filesystem::read_symlink(path, no_link);
      if (no_link) return Target{.path = path};
      // A link to what is not there yet; a circle of links would be ELOOP.
      return Resolve((std::filesystem::path(path).parent_path() / next).string(), subject, remedy);
    }
    return ErrnoStatus(errno, absl::StrCat("cannot write to ", subject), remedy);
  }
  if (S_ISDIR(info.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot write to ", subject, ": it is a directory; ", remedy));
  }
  if (!S_ISREG(info.st_mode)) {
    return Target{.path = path, .in_place = true, .fifo = S_ISFIFO(info.st_mode)};
  }
  char* real = realpath(path.c_str(), nullptr);
  Target target{.path = real != nullptr ? real : path};
  free(real);
  return target;
}

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

absl::Status WriteInPlace(const Target& target, std::string_view content,
                          const std::string& subject, const char* remedy) {
  // Without O_NONBLOCK the open of a FIFO that nobody reads would never return.
  const UniqueFd fd(open(target.path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (fd.get() < 0 && errno == ENXIO && target.fifo) return NobodyReads(subject);
  if (fd.get() < 0) return ErrnoStatus(errno, absl::StrCat("cannot open ", subject), remedy);
  fcntl(fd.get(), F_SETFL, 0);
  return WriteTo(fd.get(), content, subject);
}

// Gives a new file the permissions of the one it replaces, as far as that is allowed.
void KeepMode(int fd, const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) return;
  if (fchmod(fd, info.st_mode & 07777) != 0) return;  // then it has the usual ones
}

absl::Status Replace(const std::string& path, std::string_view content, const std::string& subject,
                     const char* remedy) {
  static std::atomic<unsigned> counter{0};
  const std::string temporary =
      absl::StrCat(path, ".", getpid(), ".", counter.fetch_add(1), ".tmp");
  absl::Status status;
  {
    const UniqueFd fd(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (fd.get() < 0) return ErrnoStatus(errno, absl::StrCat("cannot create ", subject), remedy);
    KeepMode(fd.get(), path);
    status = WriteTo(fd.get(), content, subject);
  }
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0) {
    status = ErrnoStatus(errno, absl::StrCat("cannot rename the finished file to ", subject));
  }
  if (!status.ok()) unlink(temporary.c_str());
  return status;
}

}  // namespace

absl::Status WriteResultFile(const std::string& path, std::string_view content,
                             std::string_view flag, StandardOutput standard_output) {
  const char* const remedy = RemedyFor(standard_output);
  const std::string subject = Subject(flag, path);
  if (IsStandardOutput(path)) return WriteTo(STDOUT_FILENO, content, subject);
  ASSIGN_OR_RETURN(const Target target, Resolve(path, subject, remedy));
  if (target.in_place) return WriteInPlace(target, content, subject, remedy);
  return Replace(target.path, content, subject, remedy);
}

absl::Status CheckResultFile(const std::string& path, std::string_view flag,
                             StandardOutput standard_output) {
  const char* const remedy = RemedyFor(standard_output);
  if (IsStandardOutput(path)) return absl::OkStatus();
  const std::string subject = Subject(flag, path);
  ASSIGN_OR_RETURN(const Target target, Resolve(path, subject, remedy));
  if (target.fifo) {
    const UniqueFd probe(open(target.path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK));
    if (probe.get() < 0 && errno == ENXIO) return NobodyReads(subject);
  }
  // A file is replaced, so it is the directory that must be writable.
  const std::string& checked = target.in_place ? target.path : DirectoryOf(target.path);
  if (access(checked.c_str(), W_OK) != 0) {
    return ErrnoStatus(errno, absl::StrCat("cannot write to ", subject), remedy);
  }
  return absl::OkStatus();
}

}  // namespace sipi
