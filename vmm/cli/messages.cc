#include "vmm/cli/messages.h"

#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "vmm/base/quoted.h"
#include "vmm/base/write_all.h"
#include "vmm/report/file_writer.h"

namespace sipi {

void Say(const std::string& text) {
  std::string line = text;
  std::replace(line.begin(), line.end(), '\n', ' ');
  line.resize(line.find_last_not_of(' ') + 1);
  SayText(absl::StrCat("sipi: ", Printable(line), "\n"));
}

void Say(const absl::Status& status) { Say(std::string(status.message())); }

void SayText(const std::string& text) {
  // Nobody is left to be told where this fails.
  static_cast<void>(WriteAll(STDERR_FILENO, text));
}

std::string PerSecond(uint64_t count, double seconds) {
  if (count == 0 || seconds <= 0) return "";
  const double rate = static_cast<double>(count) / seconds;
  return rate < 10 ? absl::StrFormat(", %.2g per second", rate)
                   : absl::StrFormat(", %.0f per second", rate);
}

bool Print(const std::string& text) {
  const absl::Status written = WriteResultFile("-", text);
  if (!written.ok()) Say(written);
  return written.ok();
}

}  // namespace sipi
