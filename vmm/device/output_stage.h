// Where the guest's serial bytes leave the process. The guest never waits for a reader, a dead
// reader never kills the process, and what could not be written is counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"

namespace sipi {

struct OutputSummary {
  uint64_t written_bytes = 0;
  uint64_t dropped_bytes = 0;
  int error = 0;  // errno of the write that failed for good; 0 if none did
};

// Write may be called from any thread; a call's bytes stay together and in order.
class OutputStage {
 public:
  virtual ~OutputStage() = default;
  virtual void Write(std::span<const std::byte> bytes) = 0;

  // Writes out what is buffered, for at most `limit_ms` and for as long as the reader takes
  // something, then stops for good. Later writes are dropped. Called once, from one thread.
  virtual OutputSummary Finish(int64_t limit_ms) = 0;
};

// The stage that suits what `fd` is: regular files are written directly, every byte in order;
// pipes, terminals, sockets and devices through a buffer of `buffer_bytes` and a writer thread,
// which starts with the first byte; -1 swallows everything and counts nothing. The descriptor stays
// the caller's, and its flags (shared with other processes) are left alone.
std::unique_ptr<OutputStage> MakeOutputStage(int fd, size_t buffer_bytes = 1 << 20);

// Empties what `fd` is if that is a regular file. Errors: those of ftruncate(2), naming --serial.
absl::Status EmptyFile(int fd);

// "serial output: 12345 bytes dropped (Broken pipe)"; empty if nothing was dropped.
std::string DescribeDropped(const OutputSummary& summary);

}  // namespace sipi
