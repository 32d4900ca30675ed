# See guest_code.h. One blob of code that runs at 1 MiB, with one entry for each program; the
# programs that take interrupts are in guest_interrupts.S, which is included at the end.
  .section .rodata
  .globl sipi_guest_code, sipi_guest_code_end

  .set kBase, 0x100000
#define AT(label) (kBase + label - sipi_guest_code)
  .set kStack, 0x180000
  .set kApCount, 0x500   # low RAM, which nothing but the programs writes
  .set kMark, 0x504
  .set kTicks, 0x508
  .set kStub, 0x7000     # real-mode code goes here
  .set kApic, 0xfee00000

  .macro entry name
  .globl sipi_guest_\name
sipi_guest_\name:
  .endm
  .macro outb_to port, value
  mov $\port, %dx
  mov $\value, %al
  out %al, %dx
  .endm
  .macro outl_to port, value
  mov $\port, %dx
  mov $\value, %eax
  out %eax, %dx
  .endm
  .macro leave_with code
  outl_to 0xf4, \code
  .endm
  # IA32 local APIC in xAPIC mode.
  .macro apic_write offset, value
  movl $\value, kApic + \offset
  .endm
  .macro send_init_to_id destination
  apic_write 0x310, \destination << 24
  apic_write 0x300, 0x4500
  .endm

  .code32
sipi_guest_code:
  .long 0x1badb002, 0, -0x1badb002  # multiboot 1, no flags
  .balign 16
gdt:
  .quad 0
  .quad 0x00cf9a000000ffff  # 08H: 32-bit code
  .quad 0x00cf92000000ffff  # 10H: data
  .quad 0x00009a000000ffff  # 18H: 16-bit code
  .quad 0x000092000000ffff  # 20H: 16-bit data
gdt_pointer:
  .word . - gdt - 1
  .long AT(gdt)

# --- Subroutines. All may change EAX, ECX, EDX, ESI, EDI.

# Own GDT and stack, EBP = what the loader left in EBX. Returns to the address in EDI.
set_up:
  mov %ebx, %ebp
  mov $kStack, %esp
  lgdt AT(gdt_pointer)
  ljmp $0x08, $AT(1f)
1:
  mov $0x10, %eax
  mov %eax, %ds
  mov %eax, %es
  mov %eax, %ss
  jmp *%edi
  .macro begin
  mov $AT(771f), %edi
  jmp set_up
771:
  .endm

# AL.
put_char:
  mov %al, %cl
  mov $0x3fd, %dx
1:
  in %dx, %al
  test $0x20, %al
  jz 1b
  mov $0x3f8, %dx
  mov %cl, %al
  out %al, %dx
  ret

# The zero-terminated string at ESI.
put_text:
  movzbl (%esi), %eax
  test %al, %al
  jz 1f
  inc %esi
  call put_char
  jmp put_text
1:
  ret
  .macro say text
  mov $AT(772f), %esi
  call put_text
  jmp 773f
772:
  .asciz "\text"
773:
  .endm

# EAX in hexadecimal.
put_hex:
  mov %eax, %ebx
  mov $8, %edi
1:
  rol $4, %ebx
  mov %ebx, %eax
  and $15, %eax
  movzbl AT(digits)(%eax), %eax
  call put_char
  dec %edi
  jnz 1b
  ret
digits:
  .ascii "0123456789abcdef"

# --- Printing and ending.

entry hello
  begin
  mov $0x3f8, %dx
  mov $AT(greeting), %esi
  mov $greeting_end - greeting, %ecx
  cld
  rep outsb
  leave_with 0
greeting:
  .ascii "hello from the guest\n"
greeting_end:

entry exit_byte
  outb_to 0xf4, 38

entry exit_word
  mov $0xf4, %dx
  mov $63, %ax
  out %ax, %dx

entry spin
  begin
  say "spinning\n"
1:
  jmp 1b

entry halt
  cli
  hlt

# No IDT: #UD, then #GP, then #DF, then shutdown.
entry triple_fault
  begin
  lidt AT(no_idt)
  ud2
no_idt:
  .word 0
  .long 0

# --- What is handed over.

# Multiboot: the command line; for each module its text.
entry tell_multiboot
  begin
  mov 16(%ebp), %esi
  call put_text
  say "\n"
  mov 20(%ebp), %eax
  add $'0', %al
  call put_char
  say " modules\n"
  cmpl $0, 20(%ebp)
  je 1f
  mov 24(%ebp), %edi
  mov (%edi), %esi
  mov 4(%edi), %edi
2:
  movzbl (%esi), %eax
  inc %esi
  call put_char
  cmp %edi, %esi
  jne 2b
1:
  leave_with 0

# PVH, hvm_start_info: magic, command line, module 0.
entry tell_pvh
  begin
  mov (%ebp), %eax
  call put_hex
  say "\n"
  mov 24(%ebp), %esi
  call put_text
  say "\n"
  mov 16(%ebp), %edi
  mov (%edi), %esi
  mov 8(%edi), %edi
  add %esi, %edi
1:
  movzbl (%esi), %eax
  inc %esi
  call put_char
  cmp %edi, %esi
  jne 1b
  leave_with 0

# fw_cfg: number of CPUs, size of RAM (low half).
entry tell_fw_cfg
  begin
  call count_cpus
  call put_hex
  say " CPUs\n"
  mov $0x510, %dx
  mov $3, %ax
  out %ax, %dx
  call read_fw_cfg_word
  call put_hex
  say " bytes\n"
  leave_with 0

count_cpus:
  mov $0x510, %dx
  mov $5, %ax
  out %ax, %dx
  mov $0x511, %dx
  in %dx, %al
  mov %al, %cl
  in %dx, %al
  mov %al, %ch
  movzwl %cx, %eax
  ret

# 32 bits, little-endian, to EAX.
read_fw_cfg_word:
  mov $0x511, %dx
  mov $4, %edi
1:
  in %dx, %al
  shrd $8, %eax, %ecx
  dec %edi
  jnz 1b
  mov %ecx, %eax
  ret

# The test device: E0H reads back, E4H flushes a page (which keeps what is in it), memory at
# FF000000H.
entry test_device
  begin
  outl_to 0xe0, 0x12345678
  xor %eax, %eax
  in %dx, %eax
  call put_hex
  say "\n"
  movl $0xcafe0001, 0x200000
  outl_to 0xe4, 0x200000
  mov 0x200000, %eax
  call put_hex
  say "\n"
  movl $0xcafe0002, 0xff000010
  movb $0x03, 0xff000010
  mov 0xff000010, %eax
  call put_hex
  say "\n"
  leave_with 0

# --- CPUs.

# As kvm-unit-tests start their APs: one INIT and one SIPI to all but self, at once, vector 0.
entry start_aps
  begin
  movl $0, kApCount
  mov $AT(ap), %esi
  xor %edi, %edi
  mov $ap_end - ap, %ecx
  cld
  rep movsb
  call count_cpus
  lea -1(%eax), %ebp
  apic_write 0x300, 0xc4500
  apic_write 0x300, 0xc0600
1:
  pause
  cmp %ebp, kApCount
  jne 1b
  testl $0x1000, kApic + 0x300  # delivery status
  jnz 2f
  say "all there\n"
  leave_with 0
2:
  leave_with 1
  .code16
ap:
  xor %ax, %ax
  mov %ax, %ds
  lock incw kApCount
1:
  cli
  hlt
  jmp 1b
ap_end:
  .code32

# Restarts: each says where it goes on, and changes a word of the image, which the loader must mend.
# Low RAM is kept, and so is the mark there.
  .macro second_pass_ends
  begin
  cmpl $0x5a5a0000, kMark
  je came_back
  movl $0x5a5a0000, kMark
  .endm
came_back:
  cmpl $0x11223344, AT(original)
  jne 1f
  say "came back\n"
  leave_with 0
1:
  say "came back to a stale image\n"
  leave_with 1
original:
  .long 0x11223344

entry jump_to_reset_vector
  second_pass_ends
  say "first pass\n"
  movl $0, AT(original)
  mov $AT(to_reset_vector), %esi
  mov $to_reset_vector_end - to_reset_vector, %ecx
  call put_stub
  ljmp $0x18, $kStub
  .code16
to_reset_vector:
  mov $0x20, %ax
  mov %ax, %ds
  mov %ax, %ss
  mov %cr0, %eax
  and $~1, %al
  mov %eax, %cr0
  ljmp $0xffff, $0
to_reset_vector_end:
  .code32

# ECX bytes at ESI go to kStub.
put_stub:
  mov $kStub, %edi
  cld
  rep movsb
  ret

entry init_to_own_id
  second_pass_ends
  say "first pass\n"
  movl $0, AT(original)
  send_init_to_id 0
1:
  pause
  jmp 1b

entry init_to_self_shorthand
  second_pass_ends
  say "first pass\n"
  movl $0, AT(original)
  apic_write 0x300, 0x44500
  mov $10000, %ecx  # KVM's own APIC takes it at the next entry
1:
  pause
  loop 1b
  say "went on\n"
  leave_with 1

# Resets that a shutdown byte of 0AH turns into a way back to real mode.
  .macro with_resume
  begin
  mov $AT(resumed), %esi
  mov $resumed_end - resumed, %ecx
  call put_stub
  movl $kStub, 0x467  # 0000:kStub
  outb_to 0x70, 0x0f
  outb_to 0x71, 0x0a
  .endm
  .macro reset_through port, value
  outb_to \port, \value
1:
  pause
  jmp 1b
  .endm
entry resume_keyboard
  with_resume
  reset_through 0x64, 0xfe
entry resume_port92
  with_resume
  reset_through 0x92, 1
entry resume_cf9
  with_resume
  reset_through 0xcf9, 4
entry reset_keyboard
  reset_through 0x64, 0xfe
entry reset_port92
  reset_through 0x92, 1
entry reset_cf9
  reset_through 0xcf9, 6
  .code16
resumed:
  mov $'R', %al
  mov $0x3f8, %dx
  out %al, %dx
  mov $0xf4, %dx
  xor %eax, %eax
  out %eax, %dx
resumed_end:
  .code32

# --- 64-bit mode; the loader's stack and page tables.
  .code64
entry hello64
  cmpl $0x336ec578, (%rdi)
  jne 2f
  mov 24(%rdi), %rsi  # the command line
  mov $0x3f8, %edx
1:
  lodsb
  test %al, %al
  jz 3f
  outb %al, %dx
  jmp 1b
3:
  mov $0xf4, %edx
  xor %eax, %eax
  outl %eax, %dx
2:
  mov $0xf4, %edx
  mov $1, %eax
  outl %eax, %dx

#include "tests/e2e/guest_interrupts.S"

sipi_guest_code_end:
  .byte 0
  .section .note.GNU-stack, "", @progbits
