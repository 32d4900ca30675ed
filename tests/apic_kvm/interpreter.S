// The interpreter that guest_program.h describes: what a CPU does is a table in guest memory.
//
// Real mode throughout, so that a CPU runs it straight after a SIPI; FS alone is flat, with the
// limit of 4 GiB that it was given in a moment of protected mode, for the xAPIC page and programs.
//
//   CS base INTERPRETER, SIPI vector 8      DS, ES base 0
//   GS, SS  this CPU's area: counts of interrupts, its program, its stack
//   ESI     the operation at work, in FS
    .intel_syntax noprefix
    .section .rodata
    .code16

// Physical addresses and offsets; guest_program.h has the same.
#define INTERPRETER 0x8000
#define GDTR 0x520
#define AREA_OF_ID 0x4000
#define FLAT_SELECTOR 8
#define XAPIC_EOI 0xfee000b0
#define AREA_BYTES 0x1000

// In a CPU's area. Its first 1 KiB: interrupts taken, by vector.
#define PROGRAM 0x400
#define STARTS 0x404
#define FAULTED 0x408
#define EOI_BY 0x40c
#define LOG_COUNT 0x410
#define LOG 0x600

// In an operation.
#define CODE 0
#define ADDRESS 4
#define LOW 8
#define HIGH 12
#define FAULT 16
#define EBX_OUT 20
#define ECX_OUT 24
#define OPERATION_BYTES 32

#define OPERATIONS 4            // offset of the table of operations in the interpreter

#define MSR_X2APIC_EOI 0x80b

    .globl interpreter, interpreter_end
interpreter:
    .byte 0xe9                  // JMP rel16
    .word start - . - 2
    .byte 0x90
operations:
    .irp name, exit, wrmsr, rdmsr, mmio_write, mmio_read, cpuid, halt, stay, park, wait, store
    .word op_\name - interpreter
    .endr
    .irp name, increment, jump, delay, out, tsc, window, loop
    .word op_\name - interpreter
    .endr

start:
    cli
    lgdt [GDTR]
    mov eax, cr0
    or al, 1
    mov cr0, eax
    jmp 1f
1:  mov bx, FLAT_SELECTOR
    mov fs, bx
    and al, 0xfe
    mov cr0, eax
    jmp 1f
1:  mov eax, 0xb                // its ID: in xAPIC mode the APIC has only the low 8 bits
    mov ecx, 0
    cpuid
    mov eax, dword ptr [edx * 4 + AREA_OF_ID]
    shr eax, 4
    mov gs, ax
    mov ss, ax
    mov esp, AREA_BYTES
    lock inc dword ptr gs:[STARTS]
load:
    mov esi, dword ptr gs:[PROGRAM]
    jmp fetch
next:
    add esi, OPERATION_BYTES
fetch:
    mov ebx, dword ptr fs:[esi + CODE]
    mov edi, dword ptr fs:[esi + ADDRESS]
    mov ecx, edi
    mov eax, dword ptr fs:[esi + LOW]
    mov edx, dword ptr fs:[esi + HIGH]
    add bx, bx
    jmp word ptr cs:[bx + OPERATIONS]

op_exit:                        // a host that goes on after the exit has set another program
    mov dx, 0xf4
    out dx, eax
    jmp load
op_wrmsr:
    mov dword ptr gs:[FAULTED], 0
    wrmsr
    mov eax, dword ptr gs:[FAULTED]
    mov dword ptr fs:[esi + FAULT], eax
    jmp next
op_rdmsr:
    mov dword ptr gs:[FAULTED], 0
    rdmsr
    mov dword ptr fs:[esi + LOW], eax
    mov dword ptr fs:[esi + HIGH], edx
    mov eax, dword ptr gs:[FAULTED]
    mov dword ptr fs:[esi + FAULT], eax
    jmp next
op_mmio_write:
    mov dword ptr fs:[edi], eax
    jmp next
op_mmio_read:
    mov eax, dword ptr fs:[edi]
    mov dword ptr fs:[esi + LOW], eax
    jmp next
op_cpuid:                       // EAX leaf (ADDRESS), ECX sub-leaf (LOW)
    mov ecx, eax
    mov eax, edi
    cpuid
    mov dword ptr fs:[esi + LOW], eax
    mov dword ptr fs:[esi + HIGH], edx
    mov dword ptr fs:[esi + EBX_OUT], ebx
    mov dword ptr fs:[esi + ECX_OUT], ecx
    jmp next
op_halt:
    sti
    hlt
    cli
    jmp next
op_stay:
    sti
    hlt
    jmp op_stay
op_park:
    cli
    hlt
    jmp op_park
op_wait:
    cmp dword ptr fs:[edi], eax
    jae next
    pause
    jmp op_wait
op_store:
    mov dword ptr fs:[edi], eax
    jmp next
op_increment:
    lock inc dword ptr fs:[edi]
    jmp next
op_jump:
    mov esi, edi
    jmp fetch
op_delay:                       // LOW ticks of the TSC, below 2^31
    mov ebx, eax
    rdtsc
    mov ecx, eax
1:  rdtsc
    sub eax, ecx
    cmp eax, ebx
    jb 1b
    jmp next
op_out:
    mov dx, di
    out dx, eax
    jmp next
op_tsc:
    rdtsc
    mov dword ptr fs:[esi + LOW], eax
    mov dword ptr fs:[esi + HIGH], edx
    jmp next
op_window:                      // long enough for hosts that deliver late after STI
    sti
    .rept 16
    nop
    .endr
    cli
    jmp next

op_loop:                        // counts the word down, goes to LOW unless it is 0
    dec dword ptr fs:[edi]
    jz next
    mov esi, eax
    jmp fetch

// #GP from RDMSR or WRMSR, both 2 bytes long. Real mode pushes no error code.
protection_fault:
    push ebp
    mov bp, sp
    add word ptr [bp + 4], 2
    pop ebp
    mov dword ptr gs:[FAULTED], 1
    iret

// An interrupt: counts it, logs its vector and ends it, if and how the area says. Returns with
// interrupts off, so that each STI takes one.
interrupt:
    pushad
    mov bp, sp
    and byte ptr [bp + 39], 0xfd  // IF of the FLAGS to return to: one at a time
    movzx ebx, word ptr [bp + 32]
    inc dword ptr gs:[ebx * 4]
    mov eax, dword ptr gs:[LOG_COUNT]
    and eax, 0xff
    mov byte ptr gs:[eax + LOG], bl
    inc dword ptr gs:[LOG_COUNT]
    mov eax, dword ptr gs:[EOI_BY]
    cmp al, 1
    jb 3f
    ja 2f
    mov ecx, MSR_X2APIC_EOI
    mov eax, 0
    mov edx, 0
    wrmsr
    jmp 3f
2:  mov esi, XAPIC_EOI
    mov dword ptr fs:[esi], 0
3:  popad
    add sp, 2
    iret

// 256 entries of 6 bytes: PUSH imm16, JMP rel16.
interrupt_entries:
    .set vector, 0
    .rept 256
    .byte 0x68
    .word vector
    .byte 0xe9
    .word interrupt - . - 2
    .set vector, vector + 1
    .endr
interpreter_end:
    .byte 0

    .globl interpreter_protection_fault, interpreter_interrupt_entries
    .set interpreter_protection_fault, protection_fault
    .set interpreter_interrupt_entries, interrupt_entries

    .section .note.GNU-stack, "", @progbits
