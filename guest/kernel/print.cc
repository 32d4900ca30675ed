#include "guest/kernel/print.h"

namespace sipi {
namespace {

constexpr uint32_t kLineBytes = 64;

void PutDecimal(char* at, uint32_t digits, uint64_t value) {
  for (uint32_t i = digits; i-- > 0; value /= 10) at[i] = static_cast<char>('0' + value % 10);
}

}  // namespace

void PrintShare(PerCpu& self) {
  Kernel& kernel = *self.kernel;
  const uint64_t share =
      kernel.params->scenario_value / kernel.online_count.Load(std::memory_order_seq_cst);
  char line[kLineBytes];
  for (char& c : line) c = '.';
  constexpr char kText[] = "cpu NNNN line NNNNNNNN ";
  for (uint32_t i = 0; i + 1 < sizeof(kText); ++i) line[i] = kText[i];
  line[kLineBytes - 1] = '\n';
  PutDecimal(line + 4, 4, self.cpu.value);
  const uint64_t lines = (share + kLineBytes - 1) / kLineBytes;
  for (uint64_t i = 0; i < lines; ++i) {
    PutDecimal(line + 14, 8, i);
    platform::SerialWrite(line, kLineBytes);
  }
}

}  // namespace sipi
