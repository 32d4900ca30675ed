// A line of text for the serial port, put together without a library.
#pragma once

#include <cstdint>

#include "guest/platform/platform.h"

namespace sipi::rcu {

// Longer than the line: the rest is dropped.
class TextLine {
 public:
  TextLine& Add(const char* text) {
    while (*text != 0) Put(*text++);
    return *this;
  }
  TextLine& Add(uint64_t number) {
    uint64_t unit = 1;
    while (number / unit >= 10) unit *= 10;
    for (; unit != 0; unit /= 10) Put(static_cast<char>('0' + number / unit % 10));
    return *this;
  }
  void Print() {
    text_[length_++] = '\n';
    platform::SerialWrite(text_, length_);
    length_ = 0;
  }

 private:
  void Put(char c) {
    if (length_ + 1 < sizeof(text_)) text_[length_++] = c;
  }
  char text_[128];
  uint64_t length_ = 0;
};

}  // namespace sipi::rcu
