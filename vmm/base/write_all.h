// Writes to a descriptor that may not take everything at once.
#pragma once

#include <string_view>

namespace sipi {

// Writes all of `content` to `fd`, and waits for a reader that is slow, also where the descriptor
// is non-blocking: O_NONBLOCK belongs to the open file, so whoever shares it may have set it.
// Returns 0, or the errno of the write that failed for good; some bytes may be out then. The
// process must ignore SIGPIPE. Any thread.
int WriteAll(int fd, std::string_view content);

}  // namespace sipi
