#include "vmm/load/payload.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

#include "tests/device/payload_images.h"
#include "vmm/load/image_file.h"
#include "vmm/load/loader_area.h"
#include "vmm/load/long_mode.h"

namespace sipi {
namespace {

class PayloadTest : public testing::Test {
 protected:
  absl::StatusOr<LoadedPayload> Load(const Bytes& bytes) {
    return LoadPayload(bytes, "payload.elf", options_, memory_);
  }
  std::string Error(const Bytes& bytes) { return std::string(Load(bytes).status().message()); }
  uint32_t Word(Gpa at) const { return **memory_.At<uint32_t>(at); }
  std::string Text(Gpa at, size_t bytes) const {
    return std::string(reinterpret_cast<const char*>(memory_.Pointer(at, bytes)), bytes);
  }

  PayloadOptions options_{.program = "smptest.flat", .append = "", .environment = "", .rsdp = {}};
  GuestMemory memory_ = *GuestMemory::Create(128 << 20);
};

TEST_F(PayloadTest, Elf32WithAMultibootHeaderIsMultiboot) {
  ElfImage<Elf32> image;
  image.multiboot = true;
  options_.append = "a b";
  options_.environment = "NR_CPUS=4\n";
  const auto payload = Load(image.Build());
  ASSERT_TRUE(payload.ok()) << payload.status();
  EXPECT_EQ(payload->kind, PayloadKind::kMultiboot);
  EXPECT_EQ(payload->entry, Gpa(0x40000c));
  EXPECT_EQ(payload->image.begin, Gpa(0x400000));
  EXPECT_EQ(payload->image.end, Gpa(0x40c000));
  EXPECT_EQ(Text(Gpa(0x407000), 32), std::string(32, 'd'));
  EXPECT_EQ(Text(Gpa(Word(payload->info + 16)), 16), std::string("smptest.flat a b"));
  EXPECT_EQ(Word(payload->info + 20), 1u);
  kvm_regs regs = {};
  kvm_sregs sregs = {};
  SetPayloadEntryState(*payload, memory_, regs, sregs);
  EXPECT_EQ(regs.rax, 0x2badb002u);
  EXPECT_EQ(regs.rbx, payload->info.value);
}

TEST_F(PayloadTest, LoadingAgainZeroesTheBssAndTouchesNothingElse) {
  ElfImage<Elf32> image;
  image.multiboot = true;
  const auto around = memory_.Span(Gpa(0x406000), 0x8000);
  std::fill(around->begin(), around->end(), std::byte{0xee});
  ASSERT_TRUE(Load(image.Build()).ok());
  EXPECT_EQ(Text(Gpa(0x406fff), 1), "\xee");
  EXPECT_EQ(Text(Gpa(0x407000), 32), std::string(32, 'd'));
  EXPECT_EQ(Text(Gpa(0x407020), 0x4fe0), std::string(0x4fe0, '\0'));
  EXPECT_EQ(Text(Gpa(0x40c000), 1), "\xee");
}

TEST_F(PayloadTest, APvhNoteComesFirst) {
  ElfImage<Elf64> image;
  image.multiboot = true;
  image.AddPvhNote(0x400004);
  options_.environment = "A=1\n";
  const auto payload = Load(image.Build());
  ASSERT_TRUE(payload.ok()) << payload.status();
  EXPECT_EQ(payload->kind, PayloadKind::kPvh);
  EXPECT_EQ(payload->entry, Gpa(0x400004));
  EXPECT_EQ(Word(payload->info), 0x336ec578u);
  EXPECT_EQ(Word(payload->info + 12), 1u) << "the environment is a module";
  const Gpa module(Word(payload->info + 16));
  EXPECT_EQ(Text(Gpa(Word(module)), 4), "A=1\n");
  EXPECT_EQ(Word(module + 8), 4u);
  ElfImage<Elf32> small;
  small.AddPvhNote(0x400008);
  EXPECT_EQ(Load(small.Build())->kind, PayloadKind::kPvh);
}

TEST_F(PayloadTest, Elf64WithAMultibootHeaderIsEnteredInProtectedMode) {
  ElfImage<Elf64> image;
  image.multiboot = true;
  const auto payload = Load(image.Build());
  ASSERT_TRUE(payload.ok()) << payload.status();
  EXPECT_EQ(payload->kind, PayloadKind::kMultiboot);
}

TEST_F(PayloadTest, PlainElf64IsEnteredInLongModeOnIdentityTables) {
  ElfImage<Elf64> image;
  options_.append = "quiet";
  const auto payload = Load(image.Build());
  ASSERT_TRUE(payload.ok()) << payload.status();
  EXPECT_EQ(payload->kind, PayloadKind::kElf64);
  kvm_regs regs = {};
  kvm_sregs sregs = {};
  SetPayloadEntryState(*payload, memory_, regs, sregs);
  EXPECT_EQ(regs.rip, 0x40000cu);
  EXPECT_EQ(regs.rdi, payload->info.value);
  EXPECT_EQ(regs.rsp % 16, 0u);
  EXPECT_TRUE(memory_.Contains(Gpa(regs.rsp - kLongModeStackBytes), kLongModeStackBytes));
  EXPECT_EQ(sregs.cr0, 0x80000011u);
  EXPECT_EQ(sregs.cr4, 0x20u);
  EXPECT_EQ(sregs.efer, 0x500u);
  EXPECT_EQ(sregs.cs.l, 1);
  EXPECT_EQ(sregs.cs.db, 0);
  // Walk the tables for the last 2 MiB below 4 GiB, where the APICs are next to.
  const uint64_t pml4e = **memory_.At<uint64_t>(Gpa(sregs.cr3));
  const uint64_t pdpte = **memory_.At<uint64_t>(Gpa((pml4e & ~0xfffull) + 3 * 8));
  const uint64_t pde = **memory_.At<uint64_t>(Gpa((pdpte & ~0xfffull) + 511 * 8));
  EXPECT_EQ(pml4e & 0xfff, 3u);
  EXPECT_EQ(pdpte & 0xfff, 3u);
  EXPECT_EQ(pde, 0xffe0'0083u);
  const uint64_t code = **memory_.At<uint64_t>(Gpa(sregs.gdt.base + sregs.cs.selector));
  EXPECT_EQ(code, 0x00af9b000000ffffu);
}

TEST_F(PayloadTest, TheTablesCoverRamAboveFourGiB) {
  const GuestMemory large = *GuestMemory::Create(6ull << 30);
  EXPECT_EQ(IdentityMappedBytes(large), 7ull << 30);
  EXPECT_EQ(IdentityMappedBytes(memory_), 4ull << 30);
  const auto payload = LoadPayload(ElfImage<Elf64>().Build(), "big", options_, large);
  ASSERT_TRUE(payload.ok()) << payload.status();
  const uint64_t last_pde =
      **large.At<uint64_t>(payload->long_mode_area + 2 * 4096 + 6 * 4096 + 511 * 8);
  EXPECT_EQ(last_pde, (7ull << 30) - (2 << 20) + 0x83);
}

TEST_F(PayloadTest, AVirtualEntryIsTranslated) {
  ElfImage<Elf32> image;
  image.multiboot = true;
  image.segments[0].p_vaddr = 0xc0400000;
  image.header.e_entry = 0xc040000c;
  const auto payload = Load(image.Build());
  ASSERT_TRUE(payload.ok()) << payload.status();
  EXPECT_EQ(payload->entry, Gpa(0x40000c));
}

TEST_F(PayloadTest, AMultibootImageByAddressesNeedNotBeElf) {
  Bytes bytes(0x200, std::byte{0x90});
  PutMultibootHeader(bytes, 0x10, 1u << 16);
  const uint32_t addresses[] = {0x200010, 0x200000, 0x200200, 0x201000, 0x200100};
  Put(bytes, 0x1c, addresses);
  const auto payload = Load(bytes);
  ASSERT_TRUE(payload.ok()) << payload.status();
  EXPECT_EQ(payload->kind, PayloadKind::kMultiboot);
  EXPECT_EQ(payload->entry, Gpa(0x200100));
  EXPECT_EQ(payload->image.end, Gpa(0x201000));
  EXPECT_EQ(Word(Gpa(0x200100)), 0x90909090u);
}

TEST_F(PayloadTest, ErrorsNameTheFileAndTheOffset) {
  EXPECT_EQ(Error(Bytes(100)),
            "payload.elf: offset 0x0: neither an ELF file nor an image with a multiboot header; "
            "give an uncompressed kernel");
  EXPECT_EQ(Error(ElfImage<Elf32>().Build()),
            "payload.elf: offset 0x0: a 32-bit ELF file without a multiboot header or a PVH note: "
            "nothing says how to enter it");
  ElfImage<Elf64> elsewhere;
  elsewhere.header.e_entry = 0x12345;
  EXPECT_EQ(Error(elsewhere.Build()),
            "payload.elf: offset 0x18: the 64-bit ELF entry 0x12345 is outside the image, "
            "0x400000 to 0x40c000");
  ElfImage<Elf64> arm;
  arm.header.e_machine = EM_AARCH64;
  EXPECT_EQ(Error(arm.Build()),
            "payload.elf: offset 0x12: the image is for ELF machine 183, not for x86-64 (62)");
  ElfImage<Elf64> program;
  program.AddSegment(PT_INTERP, 0x200, 0, 32, 32);
  EXPECT_EQ(Error(program.Build()),
            "payload.elf: offset 0xb0: a program for an operating system (it asks for a dynamic "
            "linker), not a kernel");
  Bytes no_place(64);
  PutMultibootHeader(no_place, 0, 0);
  EXPECT_EQ(Error(no_place),
            "payload.elf: offset 0x0: a multiboot header without addresses (flag 16), and the file "
            "is not ELF: nothing says where to load it");
}

TEST_F(PayloadTest, OverlappingAndOversizedSegmentsAreErrors) {
  ElfImage<Elf64> overlap;
  overlap.AddSegment(PT_LOAD, 0x200, 0x40bfff, 0, 1);
  EXPECT_EQ(Error(overlap.Build()),
            "payload.elf: offset 0xb0: segment at 0x40bfff overlaps the one at 0x407000");
  ElfImage<Elf64> shrunk;
  shrunk.segments[1].p_memsz = 31;
  EXPECT_EQ(Error(shrunk.Build()),
            "payload.elf: offset 0x78: segment with 32 bytes in the file but 31 in memory");
  ElfImage<Elf64> huge;
  huge.segments[1].p_memsz = uint64_t{1} << 62;
  EXPECT_TRUE(absl::IsOutOfRange(Load(huge.Build()).status()));
  ElfImage<Elf64> wrap;
  wrap.segments[1].p_paddr = ~uint64_t{0} - 16;
  EXPECT_TRUE(absl::IsOutOfRange(Load(wrap.Build()).status()));
  ElfImage<Elf64> many;
  many.header.e_phnum = 0xffff;
  EXPECT_EQ(Error(many.Build()),
            "payload.elf: offset 0x38: 65535 program headers of 56 bytes; 1 to 128 of 56 are "
            "needed");
}

// No amount of memory helps an image that is linked to where devices are.
TEST_F(PayloadTest, WhatDoesNotFitSaysWhetherMoreMemoryHelps) {
  const auto error_at = [this](uint64_t gpa, uint64_t bytes) {
    ElfImage<Elf64> image;
    image.segments[1].p_paddr = gpa;
    image.segments[1].p_memsz = bytes;
    const std::string error = Error(image.Build());
    return error.substr(error.rfind("; ") + 2);
  };
  const std::string hole =
      "no RAM is ever from 0xc0000000 up to 4 GiB, where devices are: link the image to other "
      "addresses";
  const std::string more = "give the guest more memory (--memory)";
  EXPECT_EQ(error_at(0xc000'0000, 32), hole);
  EXPECT_EQ(error_at(0xfee0'0000, 32), hole);
  EXPECT_EQ(error_at(0xbfff'ffe1, 32), hole) << "its last byte";
  EXPECT_EQ(error_at(0xbfff'ffe0, 32), more);
  EXPECT_EQ(error_at(0x1'0000'0000, 32), more);
  const std::string nowhere = "no CPU has such addresses: link the image to other addresses";
  EXPECT_EQ(error_at(0xffff'ffff'ffff'fff5, 32), nowhere);
  EXPECT_EQ(error_at(0x10'0000'0000'0000, 32), nowhere) << "the first behind 52 bits";
  EXPECT_EQ(error_at(0xf'ffff'ffff'ffe1, 32), nowhere);
}

TEST_F(PayloadTest, NoRoomForTheLoaderSaysWhatHelps) {
  const GuestMemory all_below = *GuestMemory::Create(kLowRamLimit);
  const GpaRange whole = {.begin = Gpa(0x10000), .end = Gpa(kLowRamLimit)};
  EXPECT_NE(FindLoaderArea(4096, whole, all_below).status().message().find("no more memory helps"),
            absl::string_view::npos);
  const GpaRange small = {.begin = Gpa(0x10000), .end = Gpa(memory_.size_bytes())};
  const absl::Status status = FindLoaderArea(4096, small, memory_).status();
  EXPECT_NE(status.message().find("give the guest more memory"), absl::string_view::npos);
}

TEST_F(PayloadTest, ACommandLineThatIsTooLongNamesItsFlag) {
  options_.append = std::string(4096, 'a');
  ElfImage<Elf64> pvh;
  pvh.AddPvhNote(0x400004);
  for (const Bytes& image : {ElfImage<Elf64>().Build(), pvh.Build()}) {
    EXPECT_NE(Error(image).find("a command line of 4096 characters"), std::string::npos);
    EXPECT_NE(Error(image).find("; shorten --append"), std::string::npos);
  }
}

// A bss as large as RAM costs no memory: this would be killed, or take minutes, otherwise.
TEST_F(PayloadTest, AGiganticBssCostsNothing) {
  const GuestMemory large = *GuestMemory::Create(uint64_t{1} << 40);
  ElfImage<Elf64> image;
  image.segments[1].p_paddr = 5ull << 30;
  image.segments[1].p_memsz = 900ull << 30;
  const auto payload = LoadPayload(image.Build(), "huge", options_, large);
  ASSERT_TRUE(payload.ok()) << payload.status();
  EXPECT_EQ(payload->image.end, Gpa(905ull << 30));
}

std::vector<Bytes> GoodImages() {
  ElfImage<Elf32> multiboot;
  multiboot.multiboot = true;
  ElfImage<Elf64> pvh;
  pvh.AddPvhNote(0x400004);
  Bytes by_addresses(0x200, std::byte{0x90});
  PutMultibootHeader(by_addresses, 0x10, 1u << 16);
  const uint32_t addresses[] = {0x200010, 0x200000, 0x200200, 0x201000, 0x200100};
  Put(by_addresses, 0x1c, addresses);
  return {multiboot.Build(), pvh.Build(), ElfImage<Elf64>().Build(), by_addresses};
}

TEST_F(PayloadTest, CutOffAnywhereIsOneLineAndNoCrash) {
  for (const Bytes& good : GoodImages()) {
    ASSERT_TRUE(Load(good).ok());
    for (size_t size = 0; size < good.size(); ++size) {
      // A copy of exactly that size, so that a sanitizer sees what is read beyond.
      const auto payload = Load(Bytes(good.begin(), good.begin() + static_cast<ptrdiff_t>(size)));
      ASSERT_FALSE(payload.ok()) << size << " bytes of " << good.size();
      const std::string message(payload.status().message());
      EXPECT_EQ(message.rfind("payload.elf: offset 0x", 0), 0u) << message;
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    }
  }
}

TEST_F(PayloadTest, DamagedHeadersNeverCrash) {
  std::mt19937 random(7);
  size_t loaded = 0;
  for (const Bytes& good : GoodImages()) {
    for (uint32_t round = 0; round < 20'000; ++round) {
      Bytes bad = good;
      for (uint32_t i = 0; i <= round % 4; ++i) {
        bad[random() % std::min<size_t>(bad.size(), 0x2a0)] = static_cast<std::byte>(random());
      }
      const auto payload = Load(bad);
      if (payload.ok()) {
        ++loaded;
        EXPECT_TRUE(payload->image.Contains(payload->entry));
        EXPECT_FALSE(payload->image.Contains(payload->info));
      } else {
        EXPECT_EQ(payload.status().message().find('\n'), absl::string_view::npos);
      }
    }
  }
  EXPECT_GT(loaded, 0u);
}

TEST(ImageFile, TellsWhatCannotBeRead) {
  const std::string kNotRegular =
      ": is not a regular file; name one, or save to one what this gives";
  EXPECT_EQ(ImageFile::Read("/nonexistent/payload").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ImageFile::Read("/dev/null").status().message(), "/dev/null" + kNotRegular);
  EXPECT_EQ(ImageFile::Read("/tmp").status().message(), "/tmp" + kNotRegular);
}

TEST(ImageFile, RefusesWhatIsTooLarge) {
  std::string path = "/tmp/sipi-image-file-" + std::string(6, 'X');
  const int fd = mkstemp(path.data());
  ASSERT_GE(fd, 0);
  ASSERT_EQ(ftruncate(fd, static_cast<off_t>(kMaxImageBytes + 1)), 0);  // sparse
  close(fd);
  const absl::Status status = ImageFile::Read(path).status();
  unlink(path.c_str());
  EXPECT_EQ(status.message(),
            path + ": has 1073741825 bytes; an image may have 1073741824, strip it");
}

TEST(ImageFile, GivesTheBytesOfAFile) {
  std::string path = "/tmp/sipi-mapped-file-" + std::string(6, 'X');  // mkstemp's pattern
  const int fd = mkstemp(path.data());
  ASSERT_GE(fd, 0);
  EXPECT_EQ(ImageFile::Read(path).status().message(), path + ": is empty");
  ASSERT_EQ(write(fd, "abc", 3), 3);
  close(fd);
  auto file = ImageFile::Read(path);
  unlink(path.c_str());
  ASSERT_TRUE(file.ok()) << file.status();
  const ImageFile moved = std::move(*file);  // the file is gone: its bytes are not
  ASSERT_EQ(moved.bytes().size(), 3u);
  EXPECT_EQ(memcmp(moved.bytes().data(), "abc", 3), 0);
}

}  // namespace
}  // namespace sipi
