// The AP trampoline: the page that a Start-Up IPI starts at (CS = vector << 8, IP = 0, real mode; SDM vol 3A, 9.4.3).
//
// Real mode to long mode in one step: CR4.PAE, CR3, EFER.LME, then CR0.PE and CR0.PG together. One real-mode stack for
// all APs stands behind a lock, as in Linux (the knob trampoline_lock turns it off; nothing here pushes before the AP
// has its own stack, so without the lock all APs pass at once). The ID comes from the APIC itself, in whichever mode.
// The lock is released once the AP stands on its own stack. Registers kept: ESI, EDI the TSC at the first instruction.

#include "guest/platform/x86/asm_constants.h"

#define PARAMS (SIPI_TRAMPOLINE_PAGE + SIPI_TRAMPOLINE_PARAMS)  // platform::TrampolineParams
#define P_LOCK (PARAMS + 0)
#define P_USE_LOCK (PARAMS + 4)
#define P_CR3 (PARAMS + 8)
#define P_WANT_X2APIC (PARAMS + 12)
#define P_ID_SOURCE (PARAMS + 16)
#define P_HASH_SHIFT (PARAMS + 20)
#define P_HASH_MASK (PARAMS + 24)
#define P_STRIDE (PARAMS + 28)
#define P_HASH (PARAMS + 32)
#define P_PERCPU (PARAMS + 40)
#define P_KERNEL (PARAMS + 48)
#define P_RESULT (PARAMS + 56)


    .section .trampoline, "ax"
    .globl sipi_trampoline
sipi_trampoline:
    .code16
    rdtsc
    movl %eax, %esi
    movl %edx, %edi
    cmpw $0, P_USE_LOCK             // DS is 0 after INIT (SDM vol 3A, table 9-1)
    je 2f
1:  lock btsw $0, P_LOCK
    jnc 2f
    outb %al, $SIPI_YIELD_PORT          // an exit, so that a host with few cores can run the holder
    jmp 1b
2:  lgdtl t_gdt_descriptor
    movl P_CR3, %eax
    movl %eax, %cr3
    movl $0x20, %eax
    movl %eax, %cr4
    movl $0xc0000080, %ecx
    movl $0x100, %eax               // EFER is 0 after INIT
    xorl %edx, %edx
    wrmsr
    movl $0x80010033, %eax          // CD and NW, which INIT keeps, are cleared too
    movl %eax, %cr0
    ljmpl $0x08, $3f

    .code64
3:  movl P_ID_SOURCE, %eax
    testl %eax, %eax
    jnz t_id_from_cpuid
t_apic_id:                          // -> EAX; needs the mode first
    movl $0x1b, %ecx                // IA32_APIC_BASE
    rdmsr
    testl $0x400, %eax              // EXTD
    jnz 1f
    cmpl $0, P_WANT_X2APIC
    je 2f
    orl $0xc00, %eax                // EN and EXTD: a firmware that left this AP in xAPIC mode
    wrmsr
1:  movl $0x802, %ecx
    rdmsr
    jmp t_lookup
2:  movl 0xfee00020, %eax
    shrl $24, %eax
t_lookup:                           // EAX = ID -> EBP = CPU number
    movl P_HASH_SHIFT, %ecx
    imull $SIPI_APIC_HASH_MULTIPLIER, %eax, %r9d
    shrl %cl, %r9d
    movq P_HASH, %rbx
1:  movl 4(%rbx,%r9,8), %ebp
    cmpl $-1, %ebp
    je t_unknown
    cmpl %eax, (%rbx,%r9,8)
    je 2f
    incl %r9d
    andl P_HASH_MASK, %r9d
    jmp 1b
2:  cmpl $0, P_ID_SOURCE
    jne t_check_cpuid
t_known:
    movl P_STRIDE, %ecx
    movl %ecx, %eax
    imulq %rbp, %rax
    addq P_PERCPU, %rax             // RAX = per-CPU block
    leaq (%rax,%rcx), %rsp          // its end is the stack's top
    movq P_RESULT, %rdx
    movl %ebp, SIPI_RESULT_HOLDER(%rdx)
    movb $0, P_LOCK                 // own stack: the next AP may come
    lidt sipi_idt_descriptor
    shlq $32, %rdi
    orq %rsi, %rdi
    movq %rax, %rsi                 // second argument: PerCpu
    movq %rax, %rdx
    shrq $32, %rdx
    movl $0xc0000101, %ecx          // IA32_GS_BASE
    wrmsr
    movq %rdi, %rdx                 // third: TSC
    movq P_KERNEL, %rdi             // first: Kernel
    movl $SipiApMain, %eax
    call *%rax
    ud2

// CPUID's idea of the ID: leaf 0xB EDX (1) or leaf 1 EBX[31:24] (2).
t_id_from_cpuid:
    cmpl $1, %eax
    jne 1f
    movl $0xb, %eax
    xorl %ecx, %ecx
    cpuid
    movl %edx, %eax
    jmp t_lookup
1:  movl $1, %eax
    cpuid
    shrl $24, %ebx
    movl %ebx, %eax
    jmp t_lookup

// The APIC's own ID must be the one that CPUID gave: CPUID shows the initial ID only, and firmware may lie. An AP
// whose two IDs differ would run on another CPU's stack, so it parks.
t_check_cpuid:
    movl %eax, %r8d
    movl $0x1b, %ecx
    rdmsr
    testl $0x400, %eax
    jnz 1f
    cmpl $0, P_WANT_X2APIC
    je 2f
    orl $0xc00, %eax
    wrmsr
1:  movl $0x802, %ecx
    rdmsr
    jmp 3f
2:  movl 0xfee00020, %eax
    shrl $24, %eax
    andl $0xff, %r8d
3:  cmpl %r8d, %eax
    je t_known
t_unknown:                          // EAX = the ID that fits nobody
    movq P_RESULT, %rdx
    movl %eax, SIPI_RESULT_UNKNOWN_ID(%rdx)
    lock incl SIPI_RESULT_UNKNOWN_COUNT(%rdx)
    movb $0, P_LOCK
1:  cli
    hlt
    jmp 1b

    .balign 4
t_gdt_descriptor:                   // as sipi_gdt_descriptor, within reach of real mode
    .word 3 * 8 - 1
    .long t_gdt
    .balign 8
t_gdt:
    .quad 0
    .quad 0x00af9b000000ffff
    .quad 0x00cf93000000ffff

    // A stray AP must fault at once instead of wandering.
    .fill SIPI_TRAMPOLINE_PARAMS - (. - sipi_trampoline), 1, 0xcc
    .fill 0x100, 1, 0

    .section .note.GNU-stack, "", @progbits
