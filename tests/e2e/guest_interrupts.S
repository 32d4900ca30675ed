# Part of guest_code.S: programs that take interrupts. They run in 64-bit mode, entered as Form::kElf64
# images: some KVMs that emulate ring 0 know IRETQ but no 32-bit IRET.
  .code64
  .set kIdt, 0x190000

# --- Subroutines. R15 is the local APIC, R14 the I/O APIC; EAX, ECX, EDX, ESI, EDI may change.

# An IDT without gates; returns to RBP.
set_up64:
  mov $0xfee00000, %r15d
  mov $0xfec00000, %r14d
  mov $kIdt, %edi
  xor %eax, %eax
  mov $1024, %ecx
  cld
  rep stosl
  lidt AT(idt_pointer)
  movl $0, kTicks
  jmp *%rbp
idt_pointer:
  .word 0xfff
  .quad kIdt
  .macro begin64
  mov $AT(771f), %ebp
  jmp set_up64
771:
  .endm

# The interrupt whose gate is at RDI goes to EDX.
set_gate:
  mov %dx, (%rdi)
  movw $0x08, 2(%rdi)
  movw $0x8e00, 4(%rdi)
  shr $16, %edx
  mov %edx, 6(%rdi)
  movl $0, 10(%rdi)
  ret
  .macro gate vector, handler
  mov $kIdt + 16 * \vector, %edi
  mov $AT(\handler), %edx
  call set_gate
  .endm
  .macro apic_write64 offset, value
  movl $\value, \offset(%r15)
  .endm
  .macro io_apic_write index, value
  movl $\index, (%r14)
  movl $\value, 0x10(%r14)
  .endm
  .macro send_nmi_to_id0
  apic_write64 0x310, 0
  apic_write64 0x300, 0x4400
  .endm
  .macro say64 text
  mov $AT(772f), %esi
  mov $773f - 772f, %ecx
  mov $0x3f8, %dx
  cld
  rep outsb
  jmp 773f
772:
  .ascii "\text"
773:
  .endm
  .macro say_ticks_and_leave
  say64 "ticked\n"
  leave_with 0
  .endm

# Halts with interrupts on until there have been EBP ticks.
wait_for_ticks:
  cmp %ebp, kTicks
  jae 1f
  sti
  hlt
  cli
  jmp wait_for_ticks
1:
  ret

# Counter 0: mode 2, 1,000 ticks a second.
start_timer:
  outb_to 0x43, 0x34
  outb_to 0x40, 0xa9
  outb_to 0x40, 0x04
  ret

on_pic_tick:
  push %rax
  incl kTicks
  mov $0x20, %al
  out %al, $0x20
  pop %rax
  iretq

on_apic_tick:
  incl kTicks
  apic_write64 0xb0, 0
  iretq

# Both 8259s, vectors 20H and 28H.
program_pics:
  outb_to 0x20, 0x11
  outb_to 0x21, 0x20
  outb_to 0x21, 0x04
  outb_to 0x21, 0x01
  outb_to 0xa0, 0x11
  outb_to 0xa1, 0x28
  outb_to 0xa1, 0x02
  outb_to 0xa1, 0x01
  ret
mask_pics:
  outb_to 0x21, 0xff
  outb_to 0xa1, 0xff
  ret

# --- Programs.

# Vectors, masks and LINT0 are the firmware's: IRQ 0 is vector 08H.
entry timer_as_firmware_left_it
  begin64
  gate 8, on_pic_tick
  call start_timer
  mov $3, %ebp
  call wait_for_ticks
  say_ticks_and_leave

# Vectors of the guest; LINT0 is masked until the request of the timer is in IRR of the 8259.
entry timer_through_pic
  begin64
  gate 0x20, on_pic_tick
  call program_pics
  outb_to 0x21, 0xfe
  outb_to 0xa1, 0xff
  apic_write64 0xf0, 0x1ff
  apic_write64 0x350, 0x10700
  call start_timer
  outb_to 0x20, 0x0a
1:
  in %dx, %al
  test $1, %al
  jz 1b
  apic_write64 0x350, 0x700
  mov $3, %ebp
  call wait_for_ticks
  say_ticks_and_leave

entry timer_through_io_apic
  begin64
  gate 0x30, on_apic_tick
  call mask_pics
  apic_write64 0xf0, 0x1ff
  io_apic_write 0x15, 0
  io_apic_write 0x14, 0x30
  call start_timer
  mov $3, %ebp
  call wait_for_ticks
  say_ticks_and_leave

# A level-triggered line of the I/O APIC, driven through the test device: as long as it is high, each
# end of the interrupt brings the next one. The third lowers it.
entry level_line
  begin64
  gate 0x31, on_level
  call mask_pics
  apic_write64 0xf0, 0x1ff
  io_apic_write 0x25, 0
  io_apic_write 0x24, 0x8031
  outb_to 0x200a, 1
  mov $3, %ebp
  call wait_for_ticks
  movl $0x24, (%r14)
  mov 0x10(%r14), %eax
  test $0x4000, %eax  # remote IRR
  jnz 1f
  cmpl $3, kTicks
  jne 1f
  say_ticks_and_leave
1:
  leave_with 1
on_level:
  push %rax
  push %rdx
  incl kTicks
  cmpl $3, kTicks
  jb 1f
  outb_to 0x200a, 0
1:
  apic_write64 0xb0, 0
  pop %rdx
  pop %rax
  iretq

# The same line, lowered by the first interrupt. Says whether that one is in service (ISR) before its
# end, as it has to be.
entry level_line_once
  begin64
  gate 0x31, on_level_once
  call mask_pics
  apic_write64 0xf0, 0x1ff
  io_apic_write 0x25, 0
  io_apic_write 0x24, 0x8031
  movl $0, kMark
  outb_to 0x200a, 1
  mov $1, %ebp
  call wait_for_ticks
  testl $0x20000, kMark
  jnz 1f
  say64 "not "
1:
  say64 "in service\n"
  leave_with 0
on_level_once:
  push %rax
  push %rdx
  mov 0x110(%r15), %eax  # ISR of 20H to 3FH
  mov %eax, kMark
  incl kTicks
  outb_to 0x200a, 0
  apic_write64 0xb0, 0
  pop %rdx
  pop %rax
  iretq

# IRQ 11 by way of the slave 8259, as firmware left it: vector 73H.
entry line_through_slave_pic
  begin64
  gate 0x73, on_slave_line
  outb_to 0x200b, 1
  mov $1, %ebp
  call wait_for_ticks
  outb_to 0x200b, 0
  say_ticks_and_leave
on_slave_line:
  push %rax
  incl kTicks
  mov $0x20, %al
  out %al, $0xa0
  out %al, $0x20
  pop %rax
  iretq

# An NMI to itself; another one is sent while it is handled and comes after its IRET.
entry two_nmis
  begin64
  gate 2, on_nmi
  send_nmi_to_id0
  mov $100000, %ecx
1:
  pause
  cmpl $2, kTicks
  je 2f
  loop 1b
  say64 "an NMI is lost\n"
  leave_with 1
2:
  say_ticks_and_leave
on_nmi:
  incl kTicks
  cmpl $2, kTicks
  je 1f
  send_nmi_to_id0
1:
  iretq

# The same, but what comes after the first one's IRET is a HLT with interrupts off, from which the
# second one is to take it. It may also come before: its handler does not go back.
entry nmi_before_halt
  begin64
  gate 2, on_nmi_for_good
  send_nmi_to_id0
1:
  cli
  hlt
  jmp 1b
on_nmi_for_good:
  incl kTicks
  cmpl $2, kTicks
  je 1f
  send_nmi_to_id0
  iretq
1:
  say_ticks_and_leave

# The APIC timer at its shortest period, with interrupts off and then on: the guest goes on all the
# same, in between its interrupts and in their handler.
entry shortest_period
  begin64
  gate 0x51, on_three_ticks
  apic_write64 0xf0, 0x1ff
  apic_write64 0x3e0, 0xb
  apic_write64 0x320, 0x20051
  apic_write64 0x380, 1
  mov $1000, %ecx
1:
  pause
  loop 1b
  sti
1:
  pause
  jmp 1b
on_three_ticks:
  incl kTicks
  apic_write64 0xb0, 0
  cmpl $3, kTicks
  je 1f
  iretq
1:
  say_ticks_and_leave

# Ports that are sipi's own guest's and its firmware's: nothing is there.
entry private_ports
  mov $0x560, %edx
1:
  mov $0x7e, %al
  out %al, (%dx)
  inc %edx
  cmp $0x568, %edx
  jne 1b
  say64 "still here\n"
  leave_with 0

# A fixed interrupt in the handler of an NMI, with interrupts on, while another NMI waits: what IRET
# ends is the blocking of NMIs, and of nothing else.
entry interrupt_in_nmi
  begin64
  gate 2, on_nmi_with_interrupts
  gate 0x51, on_apic_tick
  apic_write64 0xf0, 0x1ff
  send_nmi_to_id0
1:
  pause
  jmp 1b
on_nmi_with_interrupts:
  cmpl $0, kTicks
  jne 2f
  send_nmi_to_id0
  apic_write64 0x300, 0x4051
  sti
  mov $100000, %ecx
1:
  pause
  cmpl $1, kTicks
  je 3f
  loop 1b
  say64 "no interrupt in the NMI handler\n"
  leave_with 1
3:
  cli
  iretq
2:
  say_ticks_and_leave

# Ticks at the slowest rate, 18 a second, and does nothing else, for ever.
entry halt_while_timer_runs
  begin64
  gate 8, on_pic_tick
  outb_to 0x43, 0x34
  outb_to 0x40, 0
  outb_to 0x40, 0
1:
  sti
  hlt
  jmp 1b

# One interrupt (mode 0), then nothing can come any more.
entry halt_after_one_shot
  begin64
  gate 8, on_pic_tick
  outb_to 0x43, 0x30
  outb_to 0x40, 0xa9
  outb_to 0x40, 0x04
  mov $1, %ebp
  call wait_for_ticks
  say64 "ticked\n"
1:
  sti
  hlt
  jmp 1b

# SVR, LINT0 and LINT1 as the loader leaves them, each as a word of bytes: no text.
entry dump_apic
  begin64
  mov 0xf0(%r15), %eax
  mov %eax, kStub
  mov 0x350(%r15), %eax
  mov %eax, kStub + 4
  mov 0x360(%r15), %eax
  mov %eax, kStub + 8
  mov $kStub, %esi
  mov $12, %ecx
  mov $0x3f8, %dx
  cld
  rep outsb
  leave_with 0

# Says which of x2APIC mode and TSC deadline the APIC takes; #GP of the former is caught.
entry tell_features
  begin64
  gate 13, on_general_protection
  xor %ebp, %ebp  # a #GP was taken
  apic_write64 0x320, 0x50020  # TSC deadline, masked
  mov 0x320(%r15), %ebx
  mov $0x1b, %ecx
  rdmsr
  or $0xc00, %eax
  wrmsr
after_wrmsr:
  test %ebp, %ebp
  jz 1f
  say64 "no "
1:
  say64 "x2apic "
  test $0x40000, %ebx
  jnz 2f
  say64 "no "
2:
  say64 "tsc-deadline\n"
  leave_with 0
on_general_protection:
  mov $1, %ebp
  add $8, %rsp  # the error code
  movq $AT(after_wrmsr), (%rsp)
  iretq
