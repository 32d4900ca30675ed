// What is fuzzed: one input drives one machine of APICs (machine.h). The libFuzzer target and the
// unit test that replays the corpus share it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace sipi::apic::fuzz {

// Empty, or the first rule that broke.
std::string RunApicInput(std::span<const uint8_t> input);

}  // namespace sipi::apic::fuzz
