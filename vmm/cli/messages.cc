#include "vmm/cli/messages.h"

#include <algorithm>
#include <cstdio>

#include "vmm/report/file_writer.h"

namespace sipi {

void Say(const std::string& text) {
  std::string line = text;
  std::replace(line.begin(), line.end(), '\n', ' ');
  line.resize(line.find_last_not_of(' ') + 1);
  std::fprintf(stderr, "sipi: %s\n", line.c_str());
}

void Say(const absl::Status& status) { Say(std::string(status.message())); }

void SayText(const std::string& text) { std::fputs(text.c_str(), stderr); }

bool Print(const std::string& text) {
  const absl::Status written = WriteResultFile("-", text);
  if (!written.ok()) Say(written);
  return written.ok();
}

}  // namespace sipi
