#include "vmm/base/version.h"

namespace sipi {

const char* Version() { return SIPI_VERSION; }

}  // namespace sipi
