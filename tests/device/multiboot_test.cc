#include "vmm/load/multiboot.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "tests/device/payload_images.h"

namespace sipi {
namespace {

using testing::Test;

absl::StatusOr<MultibootHeader> Find(const Bytes& bytes) {
  return FindMultibootHeader(ImageBytes(bytes, "kernel"));
}

TEST(FindMultibootHeader, AnywhereAlignedInTheFirst8192Bytes) {
  for (const size_t at : {size_t{0}, size_t{4}, size_t{0x1000}, size_t{8192 - 12}}) {
    Bytes bytes(16'384);
    PutMultibootHeader(bytes, at, 3);
    const auto header = Find(bytes);
    ASSERT_TRUE(header.ok()) << header.status();
    EXPECT_EQ(header->offset, at);
    EXPECT_EQ(header->flags, 3u);
    EXPECT_FALSE(header->addresses.has_value());
  }
}

TEST(FindMultibootHeader, NotUnalignedAndNotBeyond) {
  for (const size_t at : {size_t{2}, size_t{8192 - 8}, size_t{8192}}) {
    Bytes bytes(16'384);
    PutMultibootHeader(bytes, at, 0);
    EXPECT_TRUE(absl::IsNotFound(Find(bytes).status())) << at;
  }
}

TEST(FindMultibootHeader, AWrongChecksumIsPassedOverAndNamedIfNoOtherFollows) {
  Bytes bytes(1024);
  PutMultibootHeader(bytes, 0x40, 0);
  Put(bytes, 0x48, uint32_t{0x12345678});
  EXPECT_EQ(Find(bytes).status().message(),
            "kernel: offset 0x40: multiboot header whose magic number, flags and checksum do not "
            "add up to 0");
  PutMultibootHeader(bytes, 0x80, 0);
  EXPECT_EQ(Find(bytes)->offset, 0x80u);
}

TEST(FindMultibootHeader, RefusesWhatItCannotGive) {
  Bytes video(64);
  PutMultibootHeader(video, 0, 4);
  EXPECT_EQ(Find(video).status().message(),
            "kernel: offset 0x4: the multiboot header asks for a video mode (flag 2); there is no "
            "display here");
  Bytes unknown(64);
  PutMultibootHeader(unknown, 0, 0x8000);
  EXPECT_TRUE(absl::IsInvalidArgument(Find(unknown).status()));
  Bytes optional(64);
  PutMultibootHeader(optional, 0, 0x80000000);
  EXPECT_TRUE(Find(optional).ok()) << "flags from 16 up are wishes that may be ignored";
}

TEST(FindMultibootHeader, AddressesMustFitTheFileAndTheFirst8192Bytes) {
  Bytes cut;
  PutMultibootHeader(cut, 0, 1u << 16);
  cut.resize(31);
  EXPECT_TRUE(absl::IsInvalidArgument(Find(cut).status()));
  Bytes late(16'384);
  PutMultibootHeader(late, 8192 - 16, 1u << 16);
  EXPECT_TRUE(absl::IsInvalidArgument(Find(late).status()));
}

// A header at `offset` of a file of 512 bytes.
absl::StatusOr<ImageSegment> Segment(size_t offset, const MultibootAddresses& addresses) {
  Bytes bytes(512);
  PutMultibootHeader(bytes, offset, 1u << 16);
  Put(bytes, offset + 12, addresses);
  const ImageBytes image(bytes, "kernel");
  return SegmentByAddresses(image, *FindMultibootHeader(image));
}

TEST(SegmentByAddresses, TheHeadersPlaceSaysWhereTheFileGoes) {
  const auto segment = Segment(0x40, {0x100020, 0x100000, 0x100100, 0x102000, 0x100030});
  ASSERT_TRUE(segment.ok()) << segment.status();
  EXPECT_EQ(segment->file_offset, 0x20u);
  EXPECT_EQ(segment->file_bytes, 0x100u);
  EXPECT_EQ(segment->at, Gpa(0x100000));
  EXPECT_EQ(segment->memory_bytes, 0x2000u);
}

TEST(SegmentByAddresses, ZeroMeansTheWholeFileAndNoBss) {
  const auto segment = Segment(0x40, {0x100040, 0x100000, 0, 0, 0x100000});
  ASSERT_TRUE(segment.ok()) << segment.status();
  EXPECT_EQ(segment->file_offset, 0u);
  EXPECT_EQ(segment->file_bytes, 512u);
  EXPECT_EQ(segment->memory_bytes, 512u);
}

TEST(SegmentByAddresses, ContradictionsAreErrors) {
  EXPECT_FALSE(Segment(0x40, {0x100000, 0x100020, 0, 0, 0}).ok()) << "header before the image";
  EXPECT_FALSE(Segment(0x40, {0x100041, 0x100000, 0, 0, 0}).ok()) << "before the file's start";
  EXPECT_FALSE(Segment(0x40, {0x100000, 0x100000, 0xfffff, 0, 0}).ok()) << "ends before it starts";
  EXPECT_FALSE(Segment(0x40, {0x100000, 0x100000, 0x100100, 0x1000ff, 0}).ok()) << "bss as well";
}

class MultibootInfoTest : public Test {
 protected:
  uint32_t Word(Gpa at) const { return **memory_.At<uint32_t>(at); }
  std::string Text(uint32_t at) const {
    return reinterpret_cast<const char*>(memory_.Pointer(Gpa(at), 1));
  }

  GuestMemory memory_ = *GuestMemory::Create(128 << 20);
  const GpaRange image_{Gpa(0x4000b0), Gpa(0x103b048)};
};

TEST_F(MultibootInfoTest, HoldsWhatKvmUnitTestsRead) {
  const std::string environment = "NR_CPUS=4\nTEST_DEVICE=0\n";
  MultibootInfo info{.command_line = "smptest a b", .modules = {}};
  info.modules.push_back({std::as_bytes(std::span(environment)), "environment"});
  const auto at = WriteMultibootInfo(info, image_, memory_);
  ASSERT_TRUE(at.ok()) << at.status();
  EXPECT_EQ(Word(*at), 0x24du) << "memory, command line, modules, memory map, loader's name";
  EXPECT_EQ(Word(*at + 4), 639u);
  EXPECT_EQ(Word(*at + 8), 127u * 1024);
  EXPECT_EQ(Text(Word(*at + 16)), "smptest a b");
  EXPECT_EQ(Word(*at + 20), 1u);
  const Gpa module(Word(*at + 24));
  const uint32_t begin = Word(module);
  EXPECT_EQ(begin % 4096, 0u);
  EXPECT_EQ(Word(module + 4) - begin, environment.size());
  EXPECT_EQ(Text(begin).substr(0, environment.size()), environment);
  EXPECT_EQ(Text(Word(module + 8)), "environment");
  EXPECT_EQ(Text(Word(*at + 64)), "sipi");
}

TEST_F(MultibootInfoTest, TheMemoryMapHasEntriesOf24Bytes) {
  const Gpa at = *WriteMultibootInfo({.command_line = "", .modules = {}}, image_, memory_);
  EXPECT_EQ(Word(at) & 8, 0u) << "no modules";
  EXPECT_EQ(Word(at + 20), 0u);
  const uint32_t bytes = Word(at + 44);
  const Gpa map(Word(at + 48));
  ASSERT_EQ(bytes % 24, 0u);
  ASSERT_GE(bytes, 3u * 24);
  EXPECT_EQ(Word(map), 20u);
  EXPECT_EQ(Word(map + 4), 0u);
  EXPECT_EQ(Word(map + 12), 0x9fc00u);
  EXPECT_EQ(Word(map + 20), 1u);
  const Gpa main_ram = map + 2 * 24;
  EXPECT_EQ(Word(main_ram), 20u);
  EXPECT_EQ(Word(main_ram + 4), 0x100000u);
  EXPECT_EQ(Word(main_ram + 12), 127u << 20);
  EXPECT_EQ(Word(main_ram + 20), 1u);
}

TEST_F(MultibootInfoTest, StaysOutOfPage0AndOfTheImage) {
  const Gpa free = *WriteMultibootInfo({.command_line = "x", .modules = {}}, image_, memory_);
  EXPECT_GE(free, Gpa(0x10000));
  EXPECT_LT(free, Gpa(0x9f000));
  const GpaRange low{Gpa(0x8000), Gpa(0x110000)};
  const Gpa beside = *WriteMultibootInfo({.command_line = "x", .modules = {}}, low, memory_);
  EXPECT_GE(beside, low.end);
}

TEST_F(MultibootInfoTest, SaysWhenItDoesNotFit) {
  const GuestMemory small = *GuestMemory::Create(1 << 20);
  const std::string large(2 << 20, 'x');
  MultibootInfo info;
  info.modules.push_back({std::as_bytes(std::span(large)), ""});
  const auto at = WriteMultibootInfo(info, {Gpa(0x8000), Gpa(0x9000)}, small);
  EXPECT_TRUE(absl::IsResourceExhausted(at.status())) << at.status();
}

TEST(MultibootEntryState, IsProtectedModeWithTheMagicInEax) {
  kvm_regs regs = {};
  kvm_sregs sregs = {};
  SetMultibootEntryState(Gpa(0x4000bc), Gpa(0x9e000), regs, sregs);
  EXPECT_EQ(regs.rip, 0x4000bcu);
  EXPECT_EQ(regs.rax, 0x2badb002u);
  EXPECT_EQ(regs.rbx, 0x9e000u);
  EXPECT_EQ(regs.rflags, 2u) << "interrupts off";
  EXPECT_EQ(sregs.cr0 & 0x80000001, 1u) << "protected, not paged";
  EXPECT_EQ(sregs.cs.base, 0u);
  EXPECT_EQ(sregs.cs.limit, 0xffffffffu);
  EXPECT_EQ(sregs.cs.db, 1);
  EXPECT_EQ(sregs.ss.limit, 0xffffffffu);
  EXPECT_EQ(sregs.efer, 0u);
}

}  // namespace
}  // namespace sipi
