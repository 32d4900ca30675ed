// The first rule that a fuzzed machine broke, in words. The fuzzer aborts on it, the unit test that
// replays the corpus compares it with nothing.
#pragma once

#include <string>

namespace sipi::apic::fuzz {

class Finding {
 public:
  // What the machine is about to do, for the message.
  void At(int step, const char* operation) {
    if (!text_.empty()) return;
    step_ = step;
    operation_ = operation;
  }
  void Check(bool holds, const char* rule) {
    if (holds || !text_.empty()) return;
    text_ = "step " + std::to_string(step_) + " (" + operation_ + "): " + rule;
  }

  bool found() const { return !text_.empty(); }
  const std::string& text() const { return text_; }

 private:
  int step_ = 0;
  const char* operation_ = "start";
  std::string text_;
};

}  // namespace sipi::apic::fuzz
