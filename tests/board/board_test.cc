// The board: which device answers where, and what its answers ask of the machine.
#include "vmm/board/board.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "vmm/device/output_stage.h"
#include "vmm/device/port_bus.h"
#include "vmm/load/firmware.h"

namespace sipi {
namespace {

using testing::ElementsAre;
using testing::Pair;
using Kind = PortAction::Kind;

constexpr uint64_t kRam = 0x1'2345'6000;

// Answers at one port and one address, and notes what its lines do.
class FakeLines final : public InterruptLines {
 public:
  void SetLine(uint32_t line, bool high) override { set.emplace_back(line, high); }
  bool ReadPort(uint16_t port, uint32_t, uint32_t* value) override {
    *value = 0x21;
    return port == 0x21;
  }
  bool WritePort(uint16_t port, uint32_t, uint32_t value) override {
    if (port == 0x21) written.push_back(value);
    return port == 0x21;
  }
  bool ReadMmio(Gpa gpa, std::span<std::byte> data) override {
    if (gpa.value != 0xfec0'0000) return false;
    std::fill(data.begin(), data.end(), std::byte{0x17});
    return true;
  }
  bool WriteMmio(Gpa gpa, std::span<const std::byte>) override { return gpa.value == 0xfec0'0000; }
  void EndOfInterrupt(Vector) override {}
  void TargetsChanged() override {}
  bool IntPin() const override { return false; }
  Vector Acknowledge() override { return Vector(0); }

  std::vector<std::pair<uint32_t, bool>> set;
  std::vector<uint32_t> written;
};

class BoardTest : public testing::Test {
 protected:
  BoardTest() {
    auto owned = std::make_unique<FakeLines>();
    lines = owned.get();
    board = std::make_unique<Board>(kRam, 300, std::move(owned));
  }

  PortAction Out(uint16_t port, uint32_t value, uint32_t size = 1) {
    PortAction action{Kind::kExit, 99};  // must be overwritten
    EXPECT_TRUE(board->WritePort(port, size, value, &action)) << port;
    return action;
  }
  uint32_t In(uint16_t port, uint32_t size = 1) {
    uint32_t value = 0xdead;
    EXPECT_TRUE(board->ReadPort(port, size, &value)) << port;
    return value;
  }
  void SetShutdownByte(uint8_t value) {
    Out(0x70, 0x0f);
    Out(0x71, value);
  }

  FakeLines* lines;
  std::unique_ptr<Board> board;
};

TEST_F(BoardTest, TheInterruptControllersComeFirst) {
  EXPECT_EQ(In(0x21), 0x21u);
  EXPECT_EQ(Out(0x21, 0xfe).kind, Kind::kNone);
  EXPECT_THAT(lines->written, ElementsAre(0xfe));
}

TEST_F(BoardTest, FwCfgTellsCpusAndRam) {
  Out(0x510, 5, 2);
  const uint32_t low = In(0x511);
  EXPECT_EQ(low | In(0x511) << 8, 300u);
  Out(0x510, 3, 2);
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < 8; ++i) bytes |= uint64_t{In(0x511)} << 8 * i;
  EXPECT_EQ(bytes, kRam);
}

TEST_F(BoardTest, CmosKeepsItsShutdownByte) {
  SetShutdownByte(0x0a);
  Out(0x70, 0x8f);  // with NMIs off
  EXPECT_EQ(In(0x71), 0x0au);
}

TEST_F(BoardTest, PciIsEmpty) {
  Out(0xcf8, 0x8000'0000, 4);
  EXPECT_EQ(In(0xcfc, 4), 0xffff'ffffu);
  EXPECT_EQ(In(0xcfe, 2), 0xffffu);
  EXPECT_EQ(In(0xcf8, 4), 0xffff'ffffu);
}

TEST_F(BoardTest, NobodyIsAtOtherPorts) {
  uint32_t value = 0;
  PortAction action{Kind::kExit, 99};
  for (const int number : {0x10, 0x5f, 0x72, 0xe8, 0x1f0, 0x512, 0x565, 0xcf7, 0xd00, 0x2018}) {
    const uint16_t port = static_cast<uint16_t>(number);
    EXPECT_FALSE(board->ReadPort(port, 1, &value)) << port;
    EXPECT_FALSE(board->WritePort(port, 1, 0, &action)) << port;
    EXPECT_EQ(action.kind, Kind::kNone) << port;
  }
}

// --- Resets.

struct ResetWrite {
  uint16_t port;
  uint8_t value;
};
constexpr ResetWrite kInitResets[] = {{0x64, 0xfe}, {0x92, 0x01}, {0xcf9, 0x04}};

TEST_F(BoardTest, ACpuResetWithoutAWayBackIsASystemReset) {
  for (const ResetWrite& reset : kInitResets) {
    const PortAction action = Out(reset.port, reset.value);
    EXPECT_EQ(action.kind, Kind::kSystemReset) << reset.port;
    EXPECT_EQ(action.value, reset.port);
  }
  SetShutdownByte(0x09);
  EXPECT_EQ(Out(0x64, 0xfe).kind, Kind::kSystemReset);
}

TEST_F(BoardTest, ACpuResetWithShutdownByte0AIsInit) {
  SetShutdownByte(0x0a);
  for (const ResetWrite& reset : kInitResets) {
    EXPECT_EQ(Out(reset.port, reset.value).kind, Kind::kInitLine) << reset.port;
  }
}

TEST_F(BoardTest, TheOutputPortOfTheKeyboardControllerResetsToo) {
  SetShutdownByte(0x0a);
  EXPECT_EQ(Out(0x64, 0xd1).kind, Kind::kNone);
  EXPECT_EQ(Out(0x60, 0xfe).kind, Kind::kInitLine);
}

TEST_F(BoardTest, AHardResetIsASystemResetWhateverTheShutdownByte) {
  SetShutdownByte(0x0a);
  EXPECT_EQ(Out(0xcf9, 0x06).kind, Kind::kSystemReset);
}

TEST_F(BoardTest, OnlyAByteAtCf9IsTheResetRegister) {
  EXPECT_EQ(Out(0xcf8, 0x0000'0600, 4).kind, Kind::kNone);
  EXPECT_EQ(Out(0xcf9, 0x06, 2).kind, Kind::kNone);
  EXPECT_EQ(Out(0xcf9, 0x02).kind, Kind::kNone);
  EXPECT_EQ(In(0xcf9), 0x02u);
}

TEST_F(BoardTest, TheFirmwaresPortAsksForThePayload) {
  EXPECT_EQ(Out(kFirmwarePort, 0).kind, Kind::kFirmware);
}

// --- The test device.

TEST_F(BoardTest, TheTestDeviceDrivesLines) {
  Out(0x2000, 1);
  Out(0x200b, 1);
  Out(0x2017, 0xff, 4);
  Out(0x200b, 0);
  EXPECT_THAT(lines->set,
              ElementsAre(Pair(0, true), Pair(11, true), Pair(23, true), Pair(11, false)));
}

TEST_F(BoardTest, TheTestDeviceReadsBack) {
  Out(0xe0, 0x1234'5678, 4);
  EXPECT_EQ(In(0xe0, 4), 0x1234'5678u);
  EXPECT_EQ(In(0xe2), 0x34u);
}

TEST_F(BoardTest, TheTestDeviceFlushesThePageThatIsWritten) {
  const PortAction action = Out(0xe4, 0x1234'5678, 4);
  EXPECT_EQ(action.kind, Kind::kFlushPage);
  EXPECT_EQ(action.value, 0x1234'5000u);
}

std::array<std::byte, 4> Word(uint32_t value) {
  std::array<std::byte, 4> bytes;
  memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

TEST_F(BoardTest, TheTestDeviceHas64KibOfMemory) {
  std::array<std::byte, 4> data;
  EXPECT_TRUE(board->WriteMmio(Gpa(0xff00'fffc), Word(0xcafe)));
  EXPECT_TRUE(board->ReadMmio(Gpa(0xff00'fffc), data));
  EXPECT_EQ(data, Word(0xcafe));
  EXPECT_TRUE(board->ReadMmio(Gpa(0xff00'0000), data));
  EXPECT_EQ(data, Word(0));
  EXPECT_FALSE(board->ReadMmio(Gpa(0xff01'0000), data));
  EXPECT_FALSE(board->WriteMmio(Gpa(0xfeff'ffff), data));
}

TEST_F(BoardTest, TheIoApicComesBeforeTheTestDeviceAndNobodyElseIsThere) {
  std::array<std::byte, 4> data;
  EXPECT_TRUE(board->ReadMmio(Gpa(0xfec0'0000), data));
  EXPECT_EQ(data, Word(0x1717'1717));
  EXPECT_TRUE(board->WriteMmio(Gpa(0xfec0'0000), data));
  EXPECT_FALSE(board->ReadMmio(Gpa(0xfed0'0000), data));
  EXPECT_FALSE(board->ReadMmio(Gpa(0xffff'ffff'ffff'fffc), data));
}

// --- Behind the port bus.

class BusTest : public BoardTest {
 protected:
  std::unique_ptr<OutputStage> output = MakeOutputStage(-1, 0);
  Serial16550 serial{*output};
  PortBus bus{serial, board.get()};
};

TEST_F(BusTest, StringReadsTakeOneAccessAfterTheOther) {
  const std::array<std::byte, 2> selector{std::byte{5}, std::byte{0}};
  EXPECT_TRUE(bus.Write(0x510, 2, selector).handled);
  std::array<std::byte, 2> cpus;
  ASSERT_TRUE(bus.Read(0x511, 1, cpus));
  EXPECT_THAT(cpus, ElementsAre(std::byte{300 & 0xff}, std::byte{300 >> 8}));
}

TEST_F(BusTest, StringWritesReachTheDeviceOneByOne) {
  const std::array<std::byte, 3> bytes{std::byte{1}, std::byte{2}, std::byte{3}};
  EXPECT_TRUE(bus.Write(0x21, 1, bytes).handled);
  EXPECT_THAT(lines->written, ElementsAre(1, 2, 3));
}

TEST_F(BusTest, TheLastActionOfAStringCounts) {
  const std::array<std::byte, 3> bytes{std::byte{0x00}, std::byte{0x06}, std::byte{0x00}};
  const PortBus::WriteResult result = bus.Write(0xcf9, 1, bytes);
  EXPECT_TRUE(result.handled);
  EXPECT_EQ(result.action.kind, Kind::kSystemReset);
}

TEST_F(BusTest, PortsOfNobodyReadAsOnes) {
  std::array<std::byte, 4> data = {};
  EXPECT_FALSE(bus.Read(0x1f0, 2, data));
  EXPECT_THAT(data, testing::Each(std::byte{0xff}));
  EXPECT_FALSE(bus.Write(0x1f0, 2, data).handled);
}

TEST_F(BusTest, TheExitPortTakesAnyWidth) {
  const std::array<std::byte, 4> bytes{std::byte{0x26}, std::byte{1}, std::byte{0}, std::byte{0}};
  EXPECT_EQ(bus.Write(0xf4, 1, std::span(bytes).first(1)).action.value, 0x26u);
  EXPECT_EQ(bus.Write(0xf4, 4, bytes).action.value, 0x126u);
  EXPECT_EQ(bus.Write(0xf4, 4, bytes).action.kind, Kind::kExit);
}

}  // namespace
}  // namespace sipi
