// Good, cut-off and hostile images.

#include "vmm/load/elf.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace sipi {
namespace {

constexpr uint64_t kLoadGpa = 0x100000;
constexpr uint64_t kTextOffset = 0x200;
constexpr uint64_t kNoteOffset = 0x300;

// An image under construction: header, two program headers (load and note), text, note.
struct TestImage {
  Elf64_Ehdr header = {};
  Elf64_Phdr load = {};
  Elf64_Phdr note = {};
  std::string text = "text";
  std::string note_bytes;
  size_t size = 0x400;

  TestImage() {
    memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_type = ET_EXEC;
    header.e_machine = EM_X86_64;
    header.e_entry = kLoadGpa + 1;
    header.e_phoff = sizeof(Elf64_Ehdr);
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 2;
    load.p_type = PT_LOAD;
    load.p_offset = kTextOffset;
    load.p_vaddr = 0xffffffff80000000;
    load.p_paddr = kLoadGpa;
    load.p_filesz = 4;
    load.p_memsz = 16;
    SetNote("Xen", 18, kLoadGpa + 2);
  }

  void SetNote(const std::string& owner, uint32_t type, uint32_t entry) {
    note_bytes.clear();
    const uint32_t words[] = {static_cast<uint32_t>(owner.size() + 1), 4, type};
    note_bytes.append(reinterpret_cast<const char*>(words), sizeof(words));
    note_bytes.append(owner.c_str(), owner.size() + 1);
    while (note_bytes.size() % 4 != 0) note_bytes.push_back('\0');
    note_bytes.append(reinterpret_cast<const char*>(&entry), sizeof(entry));
    note.p_type = PT_NOTE;
    note.p_offset = kNoteOffset;
    note.p_filesz = note_bytes.size();
    note.p_align = 4;
  }

  std::vector<std::byte> Bytes() const {
    std::vector<std::byte> bytes(std::max<size_t>(size, 0x400));
    memcpy(bytes.data(), &header, sizeof(header));
    memcpy(bytes.data() + sizeof(header), &load, sizeof(load));
    memcpy(bytes.data() + sizeof(header) + sizeof(load), &note, sizeof(note));
    memcpy(bytes.data() + kTextOffset, text.data(), text.size());
    memcpy(bytes.data() + kNoteOffset, note_bytes.data(), note_bytes.size());
    bytes.resize(size);
    return bytes;
  }
};

class LoadElfTest : public testing::Test {
 protected:
  absl::StatusOr<LoadedImage> Load(const TestImage& image) {
    return LoadElf(image.Bytes(), memory_, "guest.elf");
  }
  std::string Error(const TestImage& image) { return std::string(Load(image).status().message()); }
  GuestMemory memory_ = *GuestMemory::Create(4 << 20);
};

TEST_F(LoadElfTest, SegmentsGoToTheirPhysicalAddressesAndBssIsZeroed) {
  const auto bss = memory_.Span(Gpa(kLoadGpa), 17);
  std::fill(bss->begin(), bss->end(), std::byte{0xee});
  const auto loaded = Load(TestImage());
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(memcmp(bss->data(), "text", 4), 0);
  EXPECT_EQ((*bss)[4], std::byte{0});
  EXPECT_EQ((*bss)[15], std::byte{0});
  EXPECT_EQ((*bss)[16], std::byte{0xee});
  EXPECT_EQ(loaded->begin, Gpa(kLoadGpa));
  EXPECT_EQ(loaded->end, Gpa(kLoadGpa + 16));
  EXPECT_EQ(loaded->entry, Gpa(kLoadGpa + 1));
}

TEST_F(LoadElfTest, PvhEntryComesFromXensNote) {
  EXPECT_EQ(Load(TestImage())->pvh_entry, Gpa(kLoadGpa + 2));
}

TEST_F(LoadElfTest, NotesOfOthersAreNoPvhEntry) {
  TestImage image;
  image.SetNote("GNU", 18, kLoadGpa);
  EXPECT_EQ(Load(image)->pvh_entry, std::nullopt);
  image.SetNote("Xen", 5, kLoadGpa);
  EXPECT_EQ(Load(image)->pvh_entry, std::nullopt);
}

TEST_F(LoadElfTest, PvhNoteAfterAnotherNoteIsFound) {
  TestImage image;
  const std::string xen = image.note_bytes;
  image.SetNote("GNU", 3, 0);
  image.note_bytes += xen;
  image.note.p_filesz = image.note_bytes.size();
  EXPECT_EQ(Load(image)->pvh_entry, Gpa(kLoadGpa + 2));
}

TEST_F(LoadElfTest, HostileNoteLengthsAreNoEntryAndNoCrash) {
  for (const uint32_t length : {0xffffffffu, 0xfffffffdu, 0x7fffffffu, 100u}) {
    for (const size_t field : {0u, 4u}) {  // name length, descriptor length
      TestImage image;
      memcpy(image.note_bytes.data() + field, &length, sizeof(length));
      const auto loaded = Load(image);
      ASSERT_TRUE(loaded.ok()) << loaded.status();
      EXPECT_EQ(loaded->pvh_entry, std::nullopt);
    }
  }
}

TEST_F(LoadElfTest, EveryTruncationIsAnErrorWithFileAndOffset) {
  TestImage image;
  for (image.size = 0; image.size < kTextOffset + 4; ++image.size) {
    const auto loaded = Load(image);
    ASSERT_FALSE(loaded.ok()) << image.size;
    ASSERT_EQ(loaded.status().message().substr(0, 19), "guest.elf: offset 0") << loaded.status();
  }
}

TEST_F(LoadElfTest, EveryByteOfTheHeadersMayBeAnything) {
  const std::vector<std::byte> good = TestImage().Bytes();
  for (size_t at = 0; at < sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr); ++at) {
    for (const int value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
      std::vector<std::byte> bytes = good;
      bytes[at] = static_cast<std::byte>(value);
      LoadElf(bytes, memory_, "guest.elf").status().IgnoreError();  // no crash, no stray access
    }
  }
}

TEST_F(LoadElfTest, WhatIsNoX86_64ExecutableIsNamed) {
  TestImage image;
  image.header.e_ident[0] = 'X';
  EXPECT_NE(Error(image).find("not an ELF file"), std::string::npos);
  image = TestImage();
  image.header.e_ident[EI_CLASS] = ELFCLASS32;
  EXPECT_NE(Error(image).find("64-bit"), std::string::npos);
  image = TestImage();
  image.header.e_machine = EM_AARCH64;
  EXPECT_NE(Error(image).find("machine 183"), std::string::npos);
  image = TestImage();
  image.header.e_type = ET_REL;
  EXPECT_NE(Error(image).find("ELF type 1"), std::string::npos);
  image = TestImage();
  image.header.e_phentsize = 32;
  EXPECT_NE(Error(image).find("program headers of 32 bytes"), std::string::npos);
}

TEST_F(LoadElfTest, SegmentBiggerInTheFileThanInMemoryIsRefused) {
  TestImage image;
  image.load.p_memsz = 3;
  EXPECT_NE(Error(image).find("4 bytes in the file but 3 in memory"), std::string::npos);
}

TEST_F(LoadElfTest, SegmentOutsideRamSaysSo) {
  TestImage image;
  image.load.p_memsz = 1ull << 40;
  EXPECT_EQ(Load(image).status().code(), absl::StatusCode::kOutOfRange);
  image = TestImage();
  image.load.p_paddr = ~uint64_t{0} - 2;
  EXPECT_EQ(Load(image).status().code(), absl::StatusCode::kOutOfRange);
}

TEST_F(LoadElfTest, ImageWithNothingToLoadIsRefused) {
  TestImage image;
  image.load.p_type = PT_NULL;
  EXPECT_NE(Error(image).find("no segment to load"), std::string::npos);
}

TEST_F(LoadElfTest, PvhEntryOutsideTheImageIsRefused) {
  TestImage image;
  image.SetNote("Xen", 18, 0x10);
  EXPECT_NE(Error(image).find("PVH entry 0x10 is outside"), std::string::npos);
}

}  // namespace
}  // namespace sipi
