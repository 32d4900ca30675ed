// One line on a terminal that tells how far a long command is.
#pragma once

#include <string>

namespace sipi {

// Redraws in place on `fd` with carriage returns, and only if that is a terminal; changes no
// terminal setting, so there is nothing to restore. Not thread-safe.
class ProgressLine {
 public:
  ProgressLine(int fd, bool wanted);
  ~ProgressLine() { Clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Shows `text`, cut to the terminal's width.
  void Show(const std::string& text);
  // Takes the line away; to be called before anything else is printed.
  void Clear();

 private:
  int fd_;
  bool active_;
  bool shown_ = false;
};

}  // namespace sipi
