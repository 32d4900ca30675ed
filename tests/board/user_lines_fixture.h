// UserLines with a test as the rest of the machine: what the controllers do to it is noted.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "vmm/board/user_lines.h"

namespace sipi {

class UserLinesTest : public testing::Test {
 protected:
  UserLinesTest() {
    UserLines::Outputs outputs;
    outputs.send = [this](const IoApicMessage& message) {
      Note([&] {
        messages.push_back(message);
        order.push_back("send");
      });
      return accepts;
    };
    outputs.int_pin_rose = [this] { Note([&] { ++int_pin_rises; }); };
    outputs.routes_changed = [this] { Note([&] { order.push_back("routes"); }); };
    outputs.timer_idle = [this](bool idle) { Note([&] { idles.push_back(idle); }); };
    lines = std::make_unique<UserLines>(std::move(outputs));
  }

  template <class Fn>
  void Note(Fn&& fn) {
    const std::lock_guard lock(mutex);
    fn();
    changed.notify_all();
  }
  // Waits for what the timer's thread does; a test that waits in vain fails, late.
  template <class Fn>
  bool Eventually(Fn&& fn) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(30), fn);
  }

  void Out(uint16_t port, uint32_t value) { EXPECT_TRUE(lines->WritePort(port, 1, value)) << port; }
  uint32_t In(uint16_t port) {
    uint32_t value = 0;
    EXPECT_TRUE(lines->ReadPort(port, 1, &value)) << port;
    return value;
  }
  void WriteIoApic(uint64_t offset, uint32_t value) {
    std::array<std::byte, 4> data;
    memcpy(data.data(), &value, sizeof value);
    EXPECT_TRUE(lines->WriteMmio(Gpa(kIoApicGpa + offset), data));
  }
  uint32_t ReadIoApic(uint32_t index) {
    WriteIoApic(0, index);
    std::array<std::byte, 4> data;
    EXPECT_TRUE(lines->ReadMmio(Gpa(kIoApicGpa + 0x10), data));
    uint32_t value;
    memcpy(&value, data.data(), sizeof value);
    return value;
  }
  void SetEntry(uint32_t input, uint64_t entry) {
    WriteIoApic(0, 0x11 + 2 * input);
    WriteIoApic(0x10, static_cast<uint32_t>(entry >> 32));
    WriteIoApic(0, 0x10 + 2 * input);
    WriteIoApic(0x10, static_cast<uint32_t>(entry));
  }
  // Vectors 20H and 28H, all lines unmasked.
  void ProgramPics() {
    for (const auto& [port, base, wiring] :
         {std::tuple(0x20, 0x20, 4), std::tuple(0xa0, 0x28, 2)}) {
      const uint16_t command = static_cast<uint16_t>(port);
      const uint16_t data = static_cast<uint16_t>(port + 1);
      Out(command, 0x11);
      Out(data, static_cast<uint32_t>(base));
      Out(data, static_cast<uint32_t>(wiring));
      Out(data, 1);
      Out(data, 0);
    }
  }
  // Counter 0 in that mode, with that count.
  void StartTimer(uint32_t mode, uint32_t count) {
    Out(0x43, 0x30 | mode << 1);
    Out(0x40, count & 0xff);
    Out(0x40, count >> 8);
  }
  std::vector<uint8_t> Vectors() {
    const std::lock_guard lock(mutex);
    std::vector<uint8_t> vectors;
    for (const IoApicMessage& message : messages) vectors.push_back(message.vector.value);
    return vectors;
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<IoApicMessage> messages;
  std::vector<std::string> order;
  std::vector<bool> idles;
  int int_pin_rises = 0;
  bool accepts = true;               // some local APIC takes the messages
  std::unique_ptr<UserLines> lines;  // its thread ends before what it reports to
};

}  // namespace sipi
