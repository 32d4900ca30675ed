#include "tests/fuzz/apic_body.h"

#include "tests/fuzz/machine.h"

namespace sipi::apic::fuzz {

std::string RunApicInput(std::span<const uint8_t> bytes) {
  constexpr int kMaxSteps = 400;
  ByteReader input(bytes);
  Finding finding;
  Machine machine(input, finding);
  for (int step = 0; step < kMaxSteps && !input.AtEnd() && !finding.found(); ++step) {
    machine.Step(step, input);
  }
  return finding.text();
}

}  // namespace sipi::apic::fuzz
