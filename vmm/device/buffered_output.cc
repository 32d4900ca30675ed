#include "vmm/device/buffered_output.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <string>

namespace sipi {
namespace {

// A reader that takes nothing for so long while the run ends is stuck.
constexpr std::chrono::milliseconds kStuckReader{200};
constexpr size_t kWriterStackBytes = 256 * 1024;

// A description of its own for the same file, so that O_NONBLOCK does not reach those who share
// ours. Impossible for sockets, for a FIFO without reader, and where permissions have changed.
UniqueFd ReopenNonBlocking(int fd) {
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  return UniqueFd(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | O_APPEND));
}

bool IsSocket(int fd) {
  struct stat status;
  return fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode);
}

ssize_t WriteNow(int fd, bool socket, std::span<const std::byte> bytes) {
  const ssize_t count = socket ? send(fd, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL)
                               : write(fd, bytes.data(), bytes.size());
  return count < 0 ? -errno : count;
}

}  // namespace

BufferedOutput::BufferedOutput(int fd, size_t buffer_bytes) : fd_(fd), capacity_(buffer_bytes) {}

BufferedOutput::~BufferedOutput() { Finish(0); }

void BufferedOutput::Write(std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  if (state_ == State::kIdle && !finishing_ && !StartLocked()) state_ = State::kDead;
  if (state_ != State::kRunning || finishing_) {
    summary_.dropped_bytes += bytes.size();
    return;
  }
  const size_t taken = std::min(bytes.size(), capacity_ - used_);
  const size_t end = (begin_ + used_) % capacity_;
  const size_t first = std::min(taken, capacity_ - end);
  std::memcpy(ring_.get() + end, bytes.data(), first);
  std::memcpy(ring_.get(), bytes.data() + first, taken - first);
  if (used_ == 0 && taken != 0) changed_.notify_all();
  used_ += taken;
  summary_.dropped_bytes += bytes.size() - taken;
}

bool BufferedOutput::StartLocked() {
  stop_event_ = UniqueFd(eventfd(0, EFD_CLOEXEC));
  own_ = ReopenNonBlocking(fd_);
  // Where the descriptor may block, poll only promises room for so much: PIPE_BUF bytes of a pipe,
  // one byte of a terminal.
  const bool may_block = !own_.valid() && !IsSocket(fd_);
  max_chunk_bytes_ = !may_block ? 64 * 1024 : isatty(fd_) != 0 ? 1 : PIPE_BUF;
  ring_ = std::make_unique_for_overwrite<std::byte[]>(capacity_);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kWriterStackBytes);
  // The thread inherits a mask without signals: SIGPIPE then stays pending for it alone and goes
  // with it, and no other signal of the process is handled there.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = pthread_create(&thread_, &attributes, &BufferedOutput::WriterMain, this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  if (error != 0) summary_.error = error;
  joinable_ = error == 0;
  if (joinable_) state_ = State::kRunning;
  return joinable_;
}

void* BufferedOutput::WriterMain(void* self) {
  pthread_setname_np(pthread_self(), "serial");
  static_cast<BufferedOutput*>(self)->WriterLoop();
  return nullptr;
}

void BufferedOutput::WriterLoop() {
  const int fd = own_.valid() ? own_.get() : fd_;
  const bool socket = !own_.valid() && IsSocket(fd_);
  while (true) {
    const std::span<const std::byte> chunk = NextChunk();
    if (chunk.empty() || !WaitWritable()) return;
    Wrote(WriteNow(fd, socket, chunk));
  }
}

std::span<const std::byte> BufferedOutput::NextChunk() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return used_ != 0 || finishing_ || state_ == State::kDead; });
  if (state_ == State::kDead) return {};
  // Writers only append behind these bytes, so they may be read without the lock.
  const size_t bytes = std::min({used_, capacity_ - begin_, max_chunk_bytes_});
  return {ring_.get() + begin_, bytes};
}

bool BufferedOutput::WaitWritable() {
  pollfd fds[2] = {{.fd = own_.valid() ? own_.get() : fd_, .events = POLLOUT, .revents = 0},
                   {.fd = stop_event_.get(), .events = POLLIN, .revents = 0}};
  while (poll(fds, 2, -1) < 0) {
    if (errno != EINTR) return true;  // let the write tell what is wrong
  }
  return fds[1].revents == 0;
}

void BufferedOutput::Wrote(ssize_t result) {
  const std::lock_guard lock(mutex_);
  if (result == -EINTR || result == -EAGAIN) return;
  if (state_ == State::kDead) {
    // Finish gave up while this write was under way, and counted its bytes as dropped.
    if (result <= 0) return;
    summary_.dropped_bytes -= static_cast<uint64_t>(result);
    summary_.written_bytes += static_cast<uint64_t>(result);
    return;
  }
  if (result <= 0) {
    StopLocked(result < 0 ? static_cast<int>(-result) : EIO);
    return;
  }
  const size_t written = static_cast<size_t>(result);
  begin_ = (begin_ + written) % capacity_;
  used_ -= written;
  summary_.written_bytes += written;
  if (finishing_) changed_.notify_all();
}

void BufferedOutput::StopLocked(int error) {
  if (summary_.error == 0) summary_.error = error;
  summary_.dropped_bytes += used_;
  used_ = 0;
  state_ = State::kDead;
  changed_.notify_all();
}

OutputSummary BufferedOutput::Finish(int64_t limit_ms) {
  std::unique_lock lock(mutex_);
  finishing_ = true;
  changed_.notify_all();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(limit_ms);
  while (state_ == State::kRunning && used_ != 0) {
    const uint64_t written = summary_.written_bytes;
    const auto patience = std::min(deadline, std::chrono::steady_clock::now() + kStuckReader);
    changed_.wait_until(lock, patience, [&] {
      return state_ != State::kRunning || used_ == 0 || summary_.written_bytes != written;
    });
    const bool progress = summary_.written_bytes != written;
    if (!progress || std::chrono::steady_clock::now() >= deadline) break;
  }
  if (state_ == State::kRunning) StopLocked(0);
  if (!joinable_) return summary_;
  joinable_ = false;
  lock.unlock();
  eventfd_write(stop_event_.get(), 1);
  pthread_join(thread_, nullptr);
  own_.Reset();
  stop_event_.Reset();
  lock.lock();
  return summary_;
}

}  // namespace sipi
