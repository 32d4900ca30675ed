// Two payloads for an AP: one leaves nothing as it was after reset, the other says what it finds.
// init_state_test.cc has the addresses.
    .intel_syntax noprefix
    .section .rodata

#define DIRTY 0x9000            // SIPI vector 9
#define STARTED 0x600           // counts both
#define DIRTY_GDTR 0x540
#define PML4 0x200000
#define DUMP 0xb000

#define EFER 0xc0000080
#define EFER_LME_NXE 0x900
#define MSR_PAT 0x277
#define MSR_TSC_ADJUST 0x3b
#define MSR_MTRR_DEFAULT 0x2ff
#define MSR_APIC_BASE 0x1b
#define MSR_FS_BASE 0xc0000100
#define MSR_GS_BASE 0xc0000101
#define CR0_SET 0xc0010023      // PG, CD, WP, NE, MP, PE
#define CR4_SET 0x6a0           // OSXMMEXCPT, OSFXSR, PGE, PAE

#define CR4_OSFXSR 0x200

    .macro write_msr msr, high, low
    mov ecx, \msr
    mov edx, \high
    mov eax, \low
    wrmsr
    .endm

    .globl payload_dirty, payload_dirty_end
    .code16
payload_dirty:
    cli
    lgdt [DIRTY_GDTR]
    mov eax, CR4_SET
    mov cr4, eax
    mov eax, PML4
    mov cr3, eax
    mov ecx, EFER
    rdmsr
    or eax, EFER_LME_NXE
    wrmsr
    mov eax, CR0_SET
    mov cr0, eax
    .byte 0x66, 0xea            // JMP ptr16:32, to 64-bit code
    .long long_mode - payload_dirty + DIRTY
    .word 8
    .code64
long_mode:
    mov eax, 0x10
    mov ds, eax
    mov es, eax
    mov ss, eax
    mov fs, eax
    mov gs, eax
    write_msr MSR_FS_BASE, 0, 0x12345000
    write_msr MSR_GS_BASE, 0, 0x6789a000
    write_msr MSR_PAT, 0x00070401, 0x00070405
    write_msr MSR_TSC_ADJUST, 0, 0
    write_msr MSR_MTRR_DEFAULT, 0, 0x806
    mov eax, 0xc00
    mov cr2, rax
    mov eax, 0x5000
    mov dr0, rax
    mov dr1, rax
    mov dr2, rax
    mov dr3, rax
    mov eax, 0x700              // LE, GE: no breakpoint
    mov dr7, rax
    mov eax, 0xffff4ff0         // BS
    mov dr6, rax
    movups xmm0, [rip + pattern]
    mov eax, 0x0a0a0a0a
    mov ebx, 0x0b0b0b0b
    mov ecx, 0x0c0c0c0c
    mov edx, 0x0d0d0d0d
    mov esi, 0x0e0e0e0e
    mov edi, 0x0f0f0f0f
    mov ebp, 0x10101010
    mov esp, 0x9000
    mov r8, rax
    mov r9, rbx
    mov r10, rcx
    mov r11, rdx
    mov r12, rsi
    mov r13, rdi
    mov r14, rbp
    mov r15, rsp
    std
    lock inc dword ptr [STARTED]
1:  hlt
    jmp 1b
pattern:
    .fill 16, 1, 0x5a
payload_dirty_end:
    .byte 0

    .macro dump_msr msr, slot
    mov ecx, \msr
    rdmsr
    mov dword ptr [DUMP + \slot * 4], eax
    mov dword ptr [DUMP + \slot * 4 + 4], edx
    .endm
    .macro dump_register from, slot
    mov eax, \from
    mov dword ptr [DUMP + \slot * 4], eax
    .endm

    .globl payload_dump, payload_dump_end
    .code16
payload_dump:
    mov dword ptr [DUMP + 0], eax
    mov dword ptr [DUMP + 4], ebx
    mov dword ptr [DUMP + 8], ecx
    mov dword ptr [DUMP + 12], edx
    mov dword ptr [DUMP + 16], esi
    mov dword ptr [DUMP + 20], edi
    mov dword ptr [DUMP + 24], ebp
    mov dword ptr [DUMP + 28], esp
    mov esp, 0x7000
    pushfd
    pop eax
    mov dword ptr [DUMP + 32], eax
    dump_register cr0, 9
    dump_register cr2, 10
    dump_register cr3, 11
    dump_register cr4, 12
    dump_register dr0, 13
    dump_register dr3, 14
    dump_register dr6, 15
    dump_register dr7, 16
    dump_msr EFER, 17
    dump_msr MSR_PAT, 19
    dump_msr MSR_TSC_ADJUST, 21
    dump_msr MSR_MTRR_DEFAULT, 23
    dump_msr MSR_APIC_BASE, 25
    rdtsc
    mov dword ptr [DUMP + 27 * 4], eax
    mov dword ptr [DUMP + 28 * 4], edx
    mov eax, CR4_OSFXSR         // INIT has cleared it
    mov cr4, eax
    movups [DUMP + 29 * 4], xmm0
    lock inc dword ptr [STARTED]
    cli
1:  hlt
    jmp 1b
payload_dump_end:
    .byte 0

    .section .note.GNU-stack, "", @progbits
