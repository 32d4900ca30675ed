#include "vmm/device/output_stage.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "vmm/base/errno_status.h"
#include "vmm/device/buffered_output.h"

namespace sipi {
namespace {

// A regular file: the caller writes, and waits for the file system if need be.
class FileOutput final : public OutputStage {
 public:
  explicit FileOutput(int fd) : fd_(fd) {}

  void Write(std::span<const std::byte> bytes) override {
    const std::lock_guard lock(mutex_);
    while (!bytes.empty() && !finished_) {
      const ssize_t count = write(fd_, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) {
        // A full disk may have room again: the next call tries again.
        summary_.error = count < 0 ? errno : EIO;
        break;
      }
      summary_.written_bytes += static_cast<uint64_t>(count);
      bytes = bytes.subspan(static_cast<size_t>(count));
    }
    summary_.dropped_bytes += bytes.size();
  }

  OutputSummary Finish(int64_t /*limit_ms*/) override {
    const std::lock_guard lock(mutex_);
    finished_ = true;
    return summary_;
  }

 private:
  const int fd_;
  std::mutex mutex_;  // guards what is below, and keeps a call's bytes together
  bool finished_ = false;
  OutputSummary summary_;
};

// Swallows everything: silently, or counting it as dropped because of `error`.
class NoOutput final : public OutputStage {
 public:
  explicit NoOutput(int error) : error_(error) {}
  void Write(std::span<const std::byte> bytes) override {
    if (error_ != 0) dropped_.fetch_add(bytes.size(), std::memory_order_relaxed);
  }
  OutputSummary Finish(int64_t /*limit_ms*/) override {
    return {.dropped_bytes = dropped_.load(std::memory_order_relaxed), .error = error_};
  }

 private:
  const int error_;
  std::atomic<uint64_t> dropped_{0};
};

}  // namespace

std::unique_ptr<OutputStage> MakeOutputStage(int fd, size_t buffer_bytes) {
  if (fd < 0) return std::make_unique<NoOutput>(0);
  struct stat status;
  if (fstat(fd, &status) != 0) return std::make_unique<NoOutput>(errno);
  if (S_ISREG(status.st_mode)) return std::make_unique<FileOutput>(fd);
  return std::make_unique<BufferedOutput>(fd, buffer_bytes);
}

absl::Status EmptyFile(int fd) {
  struct stat status;
  if (fd < 0 || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return absl::OkStatus();
  if (ftruncate(fd, 0) == 0) return absl::OkStatus();
  return ErrnoStatus(errno, "--serial: cannot empty the file", "name another one");
}

std::string DescribeDropped(const OutputSummary& summary) {
  if (summary.dropped_bytes == 0) return "";
  const std::string why =
      summary.error != 0 ? std::strerror(summary.error) : "the reader did not keep up";
  return absl::StrCat("serial output: ", summary.dropped_bytes, " bytes dropped (", why, ")");
}

}  // namespace sipi
