// The project's version.
#pragma once

namespace sipi {

// As meson.build has it, e.g. "0.1.0".
const char* Version();

}  // namespace sipi
