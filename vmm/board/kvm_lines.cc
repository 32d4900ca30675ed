#include "vmm/board/kvm_lines.h"

namespace sipi {

void KvmLines::SetLine(uint32_t line, bool high) {
  // KVM has exactly these lines and no way to fail for them.
  if (line < kBoardLines) vm_.SetIrqLine(line, high);
}

}  // namespace sipi
