// The small devices behind ports.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <vector>

#include "vmm/device/debug_exit.h"
#include "vmm/device/fw_cfg.h"
#include "vmm/device/pci_none.h"
#include "vmm/device/port_access.h"
#include "vmm/device/reset_ports.h"
#include "vmm/device/rtc_cmos.h"
#include "vmm/device/test_device.h"

namespace sipi {
namespace {

TEST(PortAccess, WideAccessesAreBytesAtConsecutivePorts) {
  const auto value = ReadByteByByte(0x40, 4, [](uint16_t at) { return static_cast<uint8_t>(at); });
  EXPECT_EQ(value, 0x43424140u);
  std::vector<std::pair<uint16_t, uint8_t>> bytes;
  WriteByteByByte(0x20, 2, 0x1211, [&](uint16_t at, uint8_t byte) { bytes.push_back({at, byte}); });
  EXPECT_EQ(bytes, (std::vector<std::pair<uint16_t, uint8_t>>{{0x20, 0x11}, {0x21, 0x12}}));
  EXPECT_EQ(FloatingBus(1), 0xffu);
  EXPECT_EQ(FloatingBus(2), 0xffffu);
  EXPECT_EQ(FloatingBus(4), 0xffffffffu);
}

uint64_t ReadItem(FwCfg& device, uint16_t key, int bytes) {
  device.Write(0x510, 2, key);
  uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value |= uint64_t{device.Read(0x511, 1)} << 8 * i;
  return value;
}

TEST(FwCfg, TellsCpusAndRamInLittleEndianBytes) {
  FwCfg device(0x1'2345'6000, 300);
  EXPECT_EQ(ReadItem(device, 0x00, 4), 0x554d4551u) << "QEMU";
  EXPECT_EQ(ReadItem(device, 0x01, 4), 1u);
  EXPECT_EQ(ReadItem(device, 0x03, 8), 0x1'2345'6000u);
  EXPECT_EQ(ReadItem(device, 0x05, 2), 300u);
}

TEST(FwCfg, UnknownKeysAndBytesPastTheEndAreZero) {
  FwCfg device(1 << 27, 0xff);
  EXPECT_EQ(ReadItem(device, 0x11, 8), 0u);
  EXPECT_EQ(ReadItem(device, 0x19, 4), 0u) << "a directory without files";
  EXPECT_EQ(ReadItem(device, 0x8000, 4), 0u);
  EXPECT_EQ(ReadItem(device, 0x05, 8), 0xffu);
}

TEST(FwCfg, SelectingStartsOverAndOnlySixteenBitWritesSelect) {
  FwCfg device(1 << 27, 7);
  EXPECT_EQ(ReadItem(device, 0x00, 1), 'Q');
  EXPECT_EQ(ReadItem(device, 0x00, 1), 'Q');
  device.Write(0x510, 1, 0x05);
  EXPECT_EQ(device.Read(0x511, 1), static_cast<uint32_t>('E'));
  EXPECT_EQ(device.Read(0x510, 2), 0xffffu);
}

TEST(ResetPorts, TheKeyboardControllersPulseOfBit0IsInit) {
  ResetPorts ports;
  EXPECT_EQ(ports.Read(0x64, 1) & 2, 0u) << "ready for a command";
  EXPECT_EQ(ports.Write(0x64, 1, 0xfe), ResetKind::kInit);
  EXPECT_EQ(ports.Write(0x64, 1, 0xff), ResetKind::kNone);
  EXPECT_EQ(ports.Write(0x64, 1, 0xf0), ResetKind::kInit);
}

TEST(ResetPorts, ClearingBit0OfTheOutputPortIsInit) {
  ResetPorts ports;
  EXPECT_EQ(ports.Write(0x64, 1, 0xd0), ResetKind::kNone);
  EXPECT_EQ(ports.Read(0x64, 1) & 1, 1u);
  const uint32_t output = ports.Read(0x60, 1);
  EXPECT_EQ(output & 0x03, 0x03u) << "not reset, A20 open";
  EXPECT_EQ(ports.Read(0x64, 1) & 1, 0u);
  ports.Write(0x64, 1, 0xd1);
  EXPECT_EQ(ports.Write(0x60, 1, output), ResetKind::kNone);
  ports.Write(0x64, 1, 0xd1);
  EXPECT_EQ(ports.Write(0x60, 1, output & ~1u), ResetKind::kInit);
  EXPECT_EQ(ports.Write(0x60, 1, 0x00), ResetKind::kNone) << "a byte for the keyboard";
}

TEST(ResetPorts, TheControllerAnswersItsTestsAndKeepsItsCommandByte) {
  ResetPorts ports;
  ports.Write(0x64, 1, 0xaa);
  EXPECT_EQ(ports.Read(0x60, 1), 0x55u);
  ports.Write(0x64, 1, 0xab);
  EXPECT_EQ(ports.Read(0x60, 1), 0x00u);
  ports.Write(0x64, 1, 0x60);
  ports.Write(0x60, 1, 0x74);
  ports.Write(0x64, 1, 0x20);
  EXPECT_EQ(ports.Read(0x60, 1), 0x74u);
}

TEST(ResetPorts, Port92ResetsWhenItsBit0RisesAndKeepsItSet) {
  ResetPorts ports;
  EXPECT_EQ(ports.Read(0x92, 1), 0u);
  EXPECT_EQ(ports.Write(0x92, 1, 0x02), ResetKind::kNone);
  EXPECT_EQ(ports.Write(0x92, 1, 0x03), ResetKind::kInit);
  EXPECT_EQ(ports.Read(0x92, 1), 3u);
  EXPECT_EQ(ports.Write(0x92, 1, 0x03), ResetKind::kNone);
  ports.Write(0x92, 1, 0x02);
  EXPECT_EQ(ports.Write(0x92, 1, 0x03), ResetKind::kInit);
}

TEST(ResetPorts, Cf9ResetsTheCpusOrTheWholeMachine) {
  ResetPorts ports;
  EXPECT_EQ(ports.Write(0xcf9, 1, 0x00), ResetKind::kNone);
  EXPECT_EQ(ports.Write(0xcf9, 1, 0x04), ResetKind::kInit);
  EXPECT_EQ(ports.Write(0xcf9, 1, 0x02), ResetKind::kNone);
  EXPECT_EQ(ports.Read(0xcf9, 1), 0x02u);
  EXPECT_EQ(ports.Write(0xcf9, 1, 0x06), ResetKind::kSystem);
  EXPECT_EQ(ports.Write(0xcf9, 1, 0x0e), ResetKind::kSystem) << "bit 2 does not stay";
}

TEST(DebugExit, StatusIsTheValueShiftedWithBit0Set) {
  EXPECT_EQ(DebugExitStatus(0), 1);
  EXPECT_EQ(DebugExitStatus(0x31), 0x63);
  EXPECT_EQ(DebugExitStatus(0xffffffff), 255);
  EXPECT_EQ(kDebugExitPort, 0xf4);
}

TEST(PciNone, ConfigurationSpaceIsAllOnes) {
  PciNone::Write(0xcf8, 4, 0x80000000);
  EXPECT_EQ(PciNone::Read(0xcf8, 4), 0xffffffffu);
  EXPECT_EQ(PciNone::Read(0xcfc, 2), 0xffffu);
  EXPECT_EQ(PciNone::Read(0xcff, 1), 0xffu);
  EXPECT_FALSE(PciNone::Claims(0xd00));
}

TEST(TestDevice, PortsFrom2000DriveTheLines) {
  TestDevice device;
  const TestDeviceAction raise = device.Write(0x200b, 4, 1);
  EXPECT_EQ(raise.kind, TestDeviceAction::Kind::kSetLine);
  EXPECT_EQ(raise.line, 11u);
  EXPECT_TRUE(raise.high);
  const TestDeviceAction lower = device.Write(0x2017, 1, 0);
  EXPECT_EQ(lower.line, 23u);
  EXPECT_FALSE(lower.high);
  EXPECT_FALSE(TestDevice::Claims(0x2018));
}

TEST(TestDevice, E0ReadsBackInAnyWidth) {
  TestDevice device;
  EXPECT_EQ(device.Write(0xe0, 4, 0x87654321).kind, TestDeviceAction::Kind::kNone);
  EXPECT_EQ(device.Read(0xe0, 4), 0x87654321u);
  EXPECT_EQ(device.Read(0xe0, 2), 0x4321u);
  device.Write(0xe0, 1, 0xff);
  device.Write(0xe2, 2, 0x1234);
  EXPECT_EQ(device.Read(0xe0, 4), 0x123443ffu);
  EXPECT_EQ(device.Read(0xe3, 1), 0x12u);
}

TEST(TestDevice, E4AsksForTheFlushOfAPage) {
  TestDevice device;
  const TestDeviceAction action = device.Write(0xe4, 4, 0x00407abc);
  EXPECT_EQ(action.kind, TestDeviceAction::Kind::kFlushPage);
  EXPECT_EQ(action.page, Gpa(0x00407000));
}

TEST(TestDevice, ItsMemoryHoldsBytesAndEndsAfter64KiB) {
  TestDevice device;
  std::array<std::byte, 8> data = {};
  device.ReadMmio(0, data);
  EXPECT_EQ(data[0], std::byte{0});
  const std::array<std::byte, 2> written = {std::byte{0x34}, std::byte{0x12}};
  device.WriteMmio(0xfffe, written);
  device.ReadMmio(0xfff8, data);
  EXPECT_EQ(data[6], std::byte{0x34});
  EXPECT_EQ(data[7], std::byte{0x12});
  device.WriteMmio(0xffff, written);
  device.ReadMmio(0xfff9, data);
  EXPECT_EQ(data[0], std::byte{0xff});
  device.ReadMmio(~uint64_t{0}, data);
  EXPECT_EQ(data[7], std::byte{0xff});
}

uint32_t ReadCmos(RtcCmos& clock, uint8_t index, int64_t unix_seconds) {
  clock.Write(0x70, 1, index);
  return clock.Read(0x71, 1, unix_seconds);
}

// 2024-02-29 23:58:07 UTC, a Thursday.
TEST(RtcCmos, ShowsTheTimeInBcdAnd24Hours) {
  constexpr int64_t kLeapDay = 1'709'251'087;
  RtcCmos clock;
  EXPECT_EQ(ReadCmos(clock, 0x00, kLeapDay), 0x07u);
  EXPECT_EQ(ReadCmos(clock, 0x02, kLeapDay), 0x58u);
  EXPECT_EQ(ReadCmos(clock, 0x04, kLeapDay), 0x23u);
  EXPECT_EQ(ReadCmos(clock, 0x06, kLeapDay), 0x05u);
  EXPECT_EQ(ReadCmos(clock, 0x07, kLeapDay), 0x29u);
  EXPECT_EQ(ReadCmos(clock, 0x08, kLeapDay), 0x02u);
  EXPECT_EQ(ReadCmos(clock, 0x09, kLeapDay), 0x24u);
  EXPECT_EQ(ReadCmos(clock, 0x32, kLeapDay), 0x20u);
  EXPECT_EQ(ReadCmos(clock, 0x0a, kLeapDay), 0x26u) << "no update in progress";
  EXPECT_EQ(ReadCmos(clock, 0x0d, kLeapDay), 0x80u);
}

TEST(RtcCmos, RegisterBChoosesBinaryAndTwelveHours) {
  RtcCmos clock;
  clock.Write(0x70, 1, 0x0b);
  clock.Write(0x71, 1, 0x04);
  EXPECT_EQ(ReadCmos(clock, 0x04, 0), 12u) << "midnight";
  EXPECT_EQ(ReadCmos(clock, 0x04, 12 * 3600), 0x8cu) << "noon";
  EXPECT_EQ(ReadCmos(clock, 0x04, 23 * 3600), 0x8bu);
  EXPECT_EQ(ReadCmos(clock, 0x02, 59 * 60), 59u);
}

TEST(RtcCmos, KeepsTheShutdownByte) {
  RtcCmos clock;
  EXPECT_EQ(clock.shutdown_byte(), 0);
  clock.Write(0x70, 1, 0x8f);  // NMIs masked
  clock.Write(0x71, 1, 0x0a);
  EXPECT_EQ(clock.shutdown_byte(), RtcCmos::kJumpToResumeVector);
  EXPECT_EQ(ReadCmos(clock, 0x0f, 0), 0x0au);
}

}  // namespace
}  // namespace sipi
