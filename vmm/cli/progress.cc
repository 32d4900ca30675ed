#include "vmm/cli/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace sipi {
namespace {

constexpr size_t kDefaultColumns = 80;

size_t Columns(int fd) {
  winsize size = {};
  if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kDefaultColumns;
  return size.ws_col;
}

// Progress is a courtesy: a terminal that cannot be written to must not end the command.
void WriteIgnoringErrors(int fd, const std::string& text) {
  const ssize_t written = write(fd, text.data(), text.size());
  static_cast<void>(written);
}

}  // namespace

ProgressLine::ProgressLine(int fd, bool wanted) : fd_(fd), active_(wanted && isatty(fd) == 1) {}

void ProgressLine::Show(const std::string& text) {
  if (!active_) return;
  // One column stays free: a full line would wrap on some terminals, and "\r" then stays below its
  // beginning.
  const absl::string_view cut = absl::string_view(text).substr(0, Columns(fd_) - 1);
  WriteIgnoringErrors(fd_, absl::StrCat("\r", cut, "\033[K"));
  shown_ = true;
}

void ProgressLine::Clear() {
  if (!shown_) return;
  WriteIgnoringErrors(fd_, "\r\033[K");
  shown_ = false;
}

}  // namespace sipi
