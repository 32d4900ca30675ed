// An output stage for readers that may be slow, stuck or gone: a bounded buffer and one thread that
// empties it.
#pragma once

#include <pthread.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

#include "vmm/base/unique_fd.h"
#include "vmm/device/output_stage.h"

namespace sipi {

class BufferedOutput final : public OutputStage {
 public:
  // `fd` stays the caller's; it must stay open until Finish.
  BufferedOutput(int fd, size_t buffer_bytes);
  ~BufferedOutput() override;

  void Write(std::span<const std::byte> bytes) override;
  OutputSummary Finish(int64_t limit_ms) override;

 private:
  enum class State : uint8_t {
    kIdle,     // nothing written yet: no thread, no buffer
    kRunning,  // the writer thread takes bytes
    kDead,     // the descriptor failed for good, or Finish gave up: bytes are dropped
  };
  static void* WriterMain(void* self);
  void WriterLoop();
  bool StartLocked();
  // Waits until the descriptor takes bytes (true) or the stage is to stop (false).
  bool WaitWritable();
  // The next bytes to write; empty when there are none and none will come. Waits.
  std::span<const std::byte> NextChunk();
  // Accounts for a write: > 0 bytes written, or -errno.
  void Wrote(ssize_t result);
  void StopLocked(int error);

  const int fd_;
  const size_t capacity_;
  UniqueFd own_;         // the same file opened anew and non-blocking, where that is possible
  UniqueFd stop_event_;  // ends WaitWritable
  size_t max_chunk_bytes_ = 0;
  pthread_t thread_ = {};

  std::mutex mutex_;  // guards what is below
  std::condition_variable changed_;
  State state_ = State::kIdle;
  bool joinable_ = false;
  bool finishing_ = false;
  std::unique_ptr<std::byte[]> ring_;
  size_t begin_ = 0;  // index of the oldest byte
  size_t used_ = 0;
  OutputSummary summary_;
};

}  // namespace sipi
