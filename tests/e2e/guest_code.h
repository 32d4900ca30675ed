// Small guests of our own for `sipi run --payload` (guest_code.S), and the images they go into.
//
// All programs are entries into one blob that is loaded at 1 MiB and begins with a multiboot
// header.
#pragma once

#include <cstdint>
#include <string>

namespace sipi::e2e {

using Program = const unsigned char*;

#define SIPI_GUEST(name)                                 \
  extern "C" const unsigned char sipi_guest_##name[];    \
  namespace guest {                                      \
  inline constexpr Program name = &sipi_guest_##name[0]; \
  }

// Printing and ending.
SIPI_GUEST(hello)         // "hello from the guest\n" by REP OUTSB; exits with 0
SIPI_GUEST(exit_byte)     // OUT 8 bits: 38
SIPI_GUEST(exit_word)     // OUT 16 bits: 63
SIPI_GUEST(spin)          // "spinning\n", then an endless loop
SIPI_GUEST(halt)          // CLI; HLT
SIPI_GUEST(triple_fault)  // an exception without an IDT
// What they are told.
SIPI_GUEST(tell_multiboot)  // command line, number of modules, the first one's text
SIPI_GUEST(tell_pvh)        // magic number, command line, the first module's text
SIPI_GUEST(tell_fw_cfg)     // "%08x CPUs\n%08x bytes\n"
SIPI_GUEST(test_device)     // ports and memory of the test device
// CPUs.
SIPI_GUEST(start_aps)  // INIT and one SIPI (vector 0) to all but self; waits for all; exits with 0
// Restarts. "first pass\n" at first; "came back\n" and 0 when the payload is entered anew.
SIPI_GUEST(jump_to_reset_vector)
SIPI_GUEST(init_to_own_id)
SIPI_GUEST(init_to_self_shorthand)  // "went on\n" and 1 if nothing happens
// Resets by a port: the first three print R from the resume vector.
SIPI_GUEST(resume_keyboard)
SIPI_GUEST(resume_port92)
SIPI_GUEST(resume_cf9)
SIPI_GUEST(reset_keyboard)
SIPI_GUEST(reset_port92)
SIPI_GUEST(reset_cf9)
// 64-bit code, for Form::kElf64.
SIPI_GUEST(hello64)        // prints the command line
SIPI_GUEST(tell_features)  // "[no ]x2apic [no ]tsc-deadline\n"
SIPI_GUEST(dump_apic)      // SVR, LINT0, LINT1: 4 bytes each
// "ticked\n" and 0 after three interrupts.
SIPI_GUEST(timer_as_firmware_left_it)
SIPI_GUEST(timer_through_pic)
SIPI_GUEST(timer_through_io_apic)
SIPI_GUEST(level_line)
SIPI_GUEST(level_line_once)         // "[not ]in service\n" after one
SIPI_GUEST(line_through_slave_pic)  // after one
SIPI_GUEST(two_nmis)                // after two
SIPI_GUEST(nmi_before_halt)         // likewise, the second one out of a HLT
SIPI_GUEST(shortest_period)         // after three interrupts of the APIC timer
SIPI_GUEST(private_ports)           // "still here\n"
SIPI_GUEST(interrupt_in_nmi)        // after an interrupt in an NMI's handler, and the next NMI
SIPI_GUEST(halt_while_timer_runs)   // for ever
SIPI_GUEST(halt_after_one_shot)     // after one; goes on halting

#undef SIPI_GUEST

enum class Form {
  kMultiboot,  // ELF, 32 bits
  kPvh32,      // ELF, 32 bits, with a PVH note and the multiboot header
  kPvh64,      // ELF, 64 bits, with a PVH note
  kElf64,      // ELF, 64 bits, and nothing else
  kBare32,     // ELF, 32 bits, and nothing else: there is no way to enter it
};

// The bytes of an image that starts with `program`, loaded at `gpa` instead of 1 MiB if told so.
std::string GuestImage(Program program, Form form = Form::kMultiboot, uint64_t gpa = 0x100000);

// Writes bytes to a fresh file and returns its path.
std::string FileWith(const std::string& bytes);

// "--payload=" and a fresh file with that image.
std::string Payload(Program program, Form form = Form::kMultiboot);

}  // namespace sipi::e2e
