// The guest of bench/ipi.cc: IPIs back and forth between two CPUs, and broadcasts to all. Real mode;
// x2APIC registers are MSRs, so no paging is needed. ipi.cc has the same addresses.
    .intel_syntax noprefix
    .section .rodata
    .code16

#define READY 0x504             // APs that wait for interrupts
#define ROUNDS 0x508
#define APS 0x50c
#define MODE 0x510              // 0: CPUs halt, 1: CPUs spin, 2: broadcast
#define DONE 0x514              // the boot CPU has got its answer
#define ACKS 0x518              // CPUs that got the broadcast
#define SAMPLES_SEGMENT 0x1000  // in ES: TSC ticks, 4 bytes each
#define FIRST_STACK 0x2000      // segment; 128 bytes per APIC ID
#define PAUSE_TICKS 5000000     // between broadcasts: the last CPUs go back to sleep

#define MSR_APIC_BASE 0x1b
#define MSR_ID 0x802
#define MSR_EOI 0x80b
#define MSR_SVR 0x80f
#define MSR_ICR 0x830
#define ICR_INIT_OTHERS 0x000c4500
#define ICR_SIPI_OTHERS 0x000c4608
#define ICR_ALL_OTHERS 0x000c4042
#define ICR_THERE 0x00004040
#define ICR_BACK 0x00004041

    .macro code name
    .globl ipi_\name, ipi_\name\()_end
ipi_\name:
    .endm
    .macro code_end name
ipi_\name\()_end:
    .byte 0
    .endm
    .macro write_msr msr, high, low
    mov ecx, \msr
    mov edx, \high
    mov eax, \low
    wrmsr
    .endm
    .macro set_up
    mov ecx, MSR_APIC_BASE
    rdmsr
    or eax, 0xc00
    wrmsr
    write_msr MSR_SVR, 0, 0x1ff
    mov ecx, MSR_ID
    rdmsr
    shl eax, 3
    add eax, FIRST_STACK
    mov ss, ax
    mov esp, 128
    .endm

    code boot
    cli
    mov eax, 1                  // doorbell: IPIs must reach every CPU from here on
    mov dx, 0x560
    out dx, eax
    set_up
    mov ax, SAMPLES_SEGMENT
    mov es, ax
    write_msr MSR_ICR, 0, ICR_INIT_OTHERS
    write_msr MSR_ICR, 0, ICR_SIPI_OTHERS
1:  pause
    mov eax, dword ptr [READY]
    cmp eax, dword ptr [APS]
    jb 1b
    mov esi, 0
    cmp dword ptr [MODE], 2
    je broadcast
round:
    mov dword ptr [DONE], 0
    rdtsc
    mov edi, eax
    write_msr MSR_ICR, 1, ICR_THERE
    cmp dword ptr [MODE], 1
    je 3f
2:  cmp dword ptr [DONE], 1
    je 4f
    sti
    hlt
    cli
    jmp 2b
3:  sti
5:  cmp dword ptr [DONE], 1
    jne 5b
    cli
4:  rdtsc
    sub eax, edi
    mov dword ptr es:[esi * 4], eax
    inc esi
    cmp esi, dword ptr [ROUNDS]
    jb round
finish:
    mov eax, 0x31
    mov dx, 0xf4
    out dx, eax
6:  hlt
    jmp 6b
broadcast:
    mov dword ptr [ACKS], 0
    rdtsc
    mov edi, eax
    write_msr MSR_ICR, 0, ICR_ALL_OTHERS
    rdtsc
    sub eax, edi
    mov dword ptr es:[esi * 8], eax
7:  pause
    mov eax, dword ptr [ACKS]
    cmp eax, dword ptr [APS]
    jb 7b
    rdtsc
    sub eax, edi
    mov dword ptr es:[esi * 8 + 4], eax
    add edi, eax
8:  rdtsc
    sub eax, edi
    cmp eax, PAUSE_TICKS
    jb 8b
    inc esi
    cmp esi, dword ptr [ROUNDS]
    jb broadcast
    jmp finish
    code_end boot

    code ap
    cli
    set_up
    lock inc dword ptr [READY]
    cmp dword ptr [MODE], 1
    je 2f
1:  sti
    hlt
    jmp 1b
2:  sti
3:  nop
    jmp 3b
    code_end ap

    .macro handler_begin
    push eax
    push ecx
    push edx
    write_msr MSR_EOI, 0, 0
    .endm
    .macro handler_end
    pop edx
    pop ecx
    pop eax
    iret
    .endm

    code there
    handler_begin
    write_msr MSR_ICR, 0, ICR_BACK
    handler_end
    code_end there

    code back
    handler_begin
    mov dword ptr [DONE], 1
    handler_end
    code_end back

    code acknowledge
    handler_begin
    lock inc dword ptr [ACKS]
    handler_end
    code_end acknowledge

    .section .note.GNU-stack, "", @progbits
