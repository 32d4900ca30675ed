// Boot CPU entry, descriptor tables, page tables and interrupt stubs. Everything that can be data is data: in an
// emulated ring 0 each instruction costs, so no table is built at run time.

#include "guest/platform/x86/asm_constants.h"

#define KERNEL_CS 0x08
#define ISR_BASE 0x101000   // guest.ld places .isr here; the IDT below is computed from it

// --- PVH note: owner "Xen", type 18 (XEN_ELFNOTE_PHYS32_ENTRY): the 32-bit entry (Xen public/elfnote.h).
    .section .note.pvh, "a", @note
    .long 4, 4, 18
    .asciz "Xen"
    .long sipi_start32

// --- PVH entry: 32-bit protected mode, paging off, flat segments, EBX = hvm_start_info (x86/HVM direct boot ABI).
    .section .text.boot, "ax"
    .code32
    .globl sipi_start32
sipi_start32:
    rdtsc
    movl %eax, %esi
    movl %edx, %edi
    lgdt sipi_gdt_descriptor
    movl $sipi_pml4, %eax
    movl %eax, %cr3
    movl $0x20, %eax                // CR4.PAE
    movl %eax, %cr4
    movl $0xc0000080, %ecx          // IA32_EFER
    rdmsr
    orl $0x100, %eax                // LME (SDM vol 3A, 10.8.5)
    wrmsr
    movl $0x80010033, %eax          // CR0: PG, WP, NE, ET, MP, PE
    movl %eax, %cr0
    ljmp $KERNEL_CS, $1f
    .code64
1:  xorl %eax, %eax
    movl %eax, %ds
    movl %eax, %es
    movl %eax, %ss
    movl $sipi_boot_stack_end, %esp
    lidt sipi_idt_descriptor
    shlq $32, %rdi
    orq %rdi, %rsi                  // second argument: TSC at the first instruction
    movl %ebx, %edi                 // first: start info
    call SipiBootMain
    ud2

// --- Tables.
    .section .rodata.tables, "a"
    .balign 16
sipi_gdt:
    .quad 0
    .quad 0x00af9b000000ffff        // 64-bit code
    .quad 0x00cf93000000ffff        // data
sipi_gdt_end:
    .globl sipi_gdt_descriptor
sipi_gdt_descriptor:
    .word sipi_gdt_end - sipi_gdt - 1
    .long sipi_gdt
    .long 0
    .globl sipi_idt_descriptor
sipi_idt_descriptor:
    .word 256 * 16 - 1
    .quad sipi_idt

    .balign 16
sipi_idt:                           // 64-bit interrupt gates (SDM vol 3A, 6.14.1)
    .set vector, 0
    .rept 256
    .word (ISR_BASE + vector * 16) & 0xffff
    .word KERNEL_CS
    .word 0x8e00
    .word (ISR_BASE + vector * 16) >> 16
    .quad 0
    .set vector, vector + 1
    .endr

// Identity map of 4 GiB in 2 MiB pages (SDM vol 3A, 4.5). The pages from 0xfec00000 on are uncached: APIC, devices.
    .section .data.paging, "aw"
    .balign 4096
    .globl sipi_pml4
sipi_pml4:
    .quad sipi_pdpt + 0x3
    .fill 511, 8, 0
sipi_pdpt:
    .quad sipi_pd + 0x0003, sipi_pd + 0x1003, sipi_pd + 0x2003, sipi_pd + 0x3003
    .fill 508, 8, 0
sipi_pd:
    .set page, 0
    .rept 2038
    .quad page * 0x200000 + 0xe3    // present, writable, accessed, dirty, 2 MiB
    .set page, page + 1
    .endr
    .rept 10
    .quad page * 0x200000 + 0xfb    // with PCD and PWT
    .set page, page + 1
    .endr

// --- Interrupt stubs, 16 bytes each, at ISR_BASE + 16 * vector.
    .section .isr, "ax"
    .balign 16
    .globl sipi_isr_base
sipi_isr_base:
    .set vector, 0
    .rept 256
    .balign 16
    .if vector == SIPI_WAKE_VECTOR  // the way back is all its work
    jmp sipi_wake
    .else
    .if !(vector == 8 || (vector >= 10 && vector <= 14) || vector == 17 || vector == 21 || vector == 29 || vector == 30)
    pushq $0                        // vectors without an error code (SDM vol 3A, table 6-1)
    .endif
    pushq $vector
    jmp sipi_isr_common
    .endif
    .set vector, vector + 1
    .endr

    .section .text.isr, "ax"
sipi_wake:
    pushq %rax
    cmpb $0, sipi_x2apic
    je 1f
    pushq %rcx
    pushq %rdx
    movl $0x80b, %ecx               // x2APIC EOI
    xorl %eax, %eax
    xorl %edx, %edx
    wrmsr
    popq %rdx
    popq %rcx
    popq %rax
    iretq
1:  movl $0xfee000b0, %eax          // xAPIC EOI
    movl $0, (%rax)
    popq %rax
    iretq

sipi_isr_common:
    pushq %rax
    pushq %rcx
    pushq %rdx
    pushq %rsi
    pushq %rdi
    pushq %r8
    pushq %r9
    pushq %r10
    pushq %r11
    movq %rsp, %rdi                 // InterruptFrame
    cld
    pushq %rbp                      // the CPU aligned RSP to 16, then pushed 7 words; with these 10 it is off by 8
    movq %rsp, %rbp
    andq $-16, %rsp
    call SipiInterrupt
    movq %rbp, %rsp
    popq %rbp
    popq %r11
    popq %r10
    popq %r9
    popq %r8
    popq %rdi
    popq %rsi
    popq %rdx
    popq %rcx
    popq %rax
    addq $16, %rsp                  // vector, error code
    iretq

    .section .bss.stack, "aw", @nobits
    .balign 16
    .fill 16384, 1, 0
sipi_boot_stack_end:

    .section .note.GNU-stack, "", @progbits
