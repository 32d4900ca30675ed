#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "guest/abi/layout.h"
#include "vmm/device/output_stage.h"
#include "vmm/device/pm_timer.h"
#include "vmm/device/port_bus.h"

namespace sipi {
namespace {

class RecordingOutput final : public OutputStage {
 public:
  void Write(std::span<const std::byte> bytes) override {
    for (const std::byte byte : bytes) text += std::to_integer<char>(byte);
  }
  OutputSummary Finish(int64_t) override { return {}; }
  std::string text;
};

class PortBusTest : public testing::Test {
 protected:
  PortBus::WriteResult Write(uint16_t port, const std::vector<uint8_t>& bytes, uint32_t size) {
    return bus.Write(port, size, std::as_bytes(std::span(bytes)));
  }
  uint8_t Read8(uint16_t port) {
    std::byte value{};
    bus.Read(port, 1, std::span(&value, 1));
    return std::to_integer<uint8_t>(value);
  }

  RecordingOutput output;
  Serial16550 serial{output};
  PortBus bus{serial};
};

TEST(PmTimer, Counts3579545TicksPerSecondIn24Bits) {
  EXPECT_EQ(PmTimerAt(0), 0u);
  EXPECT_EQ(PmTimerAt(1'000'000'000), 3'579'545u);
  EXPECT_EQ(PmTimerAt(1'000'000), 3'579u);
  EXPECT_EQ(PmTimerAt(5'000'000'000), 5u * 3'579'545 - (1u << 24));
}

TEST(PmTimer, KeepsItsRateAfterManyYears) {
  constexpr uint64_t kTenYearsNs = 10ull * 365 * 86400 * 1'000'000'000;
  const uint32_t first = PmTimerAt(kTenYearsNs);
  const uint32_t second = PmTimerAt(kTenYearsNs + 1'000'000'000);
  EXPECT_EQ((second - first) & kPmTimerMask, 3'579'545u);
}

TEST_F(PortBusTest, PmTimerIsReadAs32BitsAndIgnoresWrites) {
  std::array<std::byte, 4> bytes;
  EXPECT_TRUE(bus.Read(abi::kPmTimerPort, 4, bytes));
  uint32_t value;
  std::memcpy(&value, bytes.data(), sizeof value);
  EXPECT_LE(value, kPmTimerMask);
  EXPECT_TRUE(Write(abi::kPmTimerPort, {0, 0, 0, 0}, 4).handled);
}

TEST_F(PortBusTest, SerialBytesComeOutInOrderSinglyAndInStrings) {
  Write(abi::kSerialPort, {'a'}, 1);
  Write(abi::kSerialPort, {'b', 'c', 'd'}, 1);
  EXPECT_EQ(output.text, "abcd");
}

TEST_F(PortBusTest, TransmitterIsAlwaysEmpty) { EXPECT_EQ(Read8(abi::kSerialPort + 5), 0x60); }

TEST_F(PortBusTest, DivisorLatchHidesTheDataRegister) {
  Write(abi::kSerialPort + 3, {0x83}, 1);
  Write(abi::kSerialPort, {0x0c}, 1);
  Write(abi::kSerialPort + 1, {0x01}, 1);
  EXPECT_EQ(Read8(abi::kSerialPort), 0x0c);
  EXPECT_EQ(Read8(abi::kSerialPort + 1), 0x01);
  EXPECT_EQ(output.text, "");
  Write(abi::kSerialPort + 3, {0x03}, 1);
  EXPECT_EQ(Read8(abi::kSerialPort), 0);
  Write(abi::kSerialPort, {'x'}, 1);
  EXPECT_EQ(output.text, "x");
}

TEST_F(PortBusTest, UartRegistersReadBack) {
  Write(abi::kSerialPort + 1, {0xff}, 1);
  EXPECT_EQ(Read8(abi::kSerialPort + 1), 0x0f);
  Write(abi::kSerialPort + 4, {0x0b}, 1);
  EXPECT_EQ(Read8(abi::kSerialPort + 4), 0x0b);
  Write(abi::kSerialPort + 7, {0x5a}, 1);
  EXPECT_EQ(Read8(abi::kSerialPort + 7), 0x5a);
  EXPECT_EQ(Read8(abi::kSerialPort + 2), 0x01);
  Write(abi::kSerialPort + 2, {0x01}, 1);
  EXPECT_EQ(Read8(abi::kSerialPort + 2), 0xc1);
}

TEST_F(PortBusTest, ExitDoorbellAndChargeBecomeActions) {
  const auto exit = Write(abi::kExitPort, {0x31, 0, 0, 0}, 4);
  EXPECT_EQ(exit.action.kind, PortAction::Kind::kExit);
  EXPECT_EQ(exit.action.value, 0x31u);
  const auto bell = Write(abi::kDoorbellPort, {2, 0, 0, 0}, 4);
  EXPECT_EQ(bell.action.kind, PortAction::Kind::kDoorbell);
  EXPECT_EQ(bell.action.value, 2u);
  const auto charge = Write(abi::kChargePort, {5}, 1);
  EXPECT_EQ(charge.action.kind, PortAction::Kind::kCharge);
  EXPECT_EQ(charge.action.value, 5u);
}

TEST_F(PortBusTest, APortWhereNothingIsReadsAllOnes) {
  std::array<std::byte, 2> bytes = {};
  EXPECT_FALSE(bus.Read(0x1234, 2, bytes));
  EXPECT_EQ(bytes[0], std::byte{0xff});
  EXPECT_EQ(bytes[1], std::byte{0xff});
  EXPECT_FALSE(Write(0x1234, {1, 2}, 2).handled);
}

TEST_F(PortBusTest, AWideAccessToTheUartIsNotHandled) {
  EXPECT_FALSE(Write(abi::kSerialPort, {'a', 'b'}, 2).handled);
  EXPECT_EQ(output.text, "");
}

}  // namespace
}  // namespace sipi
