#include "vmm/base/write_all.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

namespace sipi {

int WriteAll(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t count = write(fd, content.data(), content.size());
    if (count > 0) {
      content.remove_prefix(static_cast<size_t>(count));
      continue;
    }
    if (count == 0) return EIO;
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return errno;
    // Whatever is wrong with the descriptor, the next write tells.
    pollfd room = {.fd = fd, .events = POLLOUT, .revents = 0};
    if (poll(&room, 1, -1) < 0 && errno != EINTR) return errno;
  }
  return 0;
}

}  // namespace sipi
