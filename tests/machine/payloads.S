// See payloads.h. Real mode throughout: x2APIC registers are MSRs, so no paging is needed.
    .intel_syntax noprefix
    .section .rodata
    .code16

#define TOTAL 0x500
#define READY 0x504
#define ROUNDS 0x508
#define APS 0x50c
#define COUNT 0x600

#define MSR_APIC_BASE 0x1b
#define MSR_ID 0x802
#define MSR_EOI 0x80b
#define MSR_SVR 0x80f
#define MSR_ICR 0x830
#define MSR_LVT_TIMER 0x832
#define MSR_TIMER_INITIAL 0x838
#define MSR_TIMER_DIVIDE 0x83e
#define MSR_TSC_DEADLINE 0x6e0

#define ICR_INIT_OTHERS 0x000c4500
#define ICR_SIPI_OTHERS 0x000c4608
#define ICR_INIT 0x00004500
#define ICR_SIPI 0x00004608
#define ICR_NMI 0x00004400
#define ICR_FIXED_40 0x00004040

    .macro payload name
    .globl payload_\name, payload_\name\()_end
payload_\name:
    .endm
    .macro payload_end name
payload_\name\()_end:
    .byte 0
    .endm

    .macro write_msr msr, high, low
    mov ecx, \msr
    mov edx, \high
    mov eax, \low
    wrmsr
    .endm
    .macro exit_machine code
    mov eax, \code
    mov dx, 0xf4
    out dx, eax
9:  hlt
    jmp 9b
    .endm
    .macro doorbell
    mov eax, 1
    mov dx, 0x560
    out dx, eax
    .endm
    // x2APIC mode and software enable; a stack of 256 bytes per APIC ID; EBX = APIC ID.
    .macro set_up_apic
    mov ecx, MSR_APIC_BASE
    rdmsr
    or eax, 0xc00
    wrmsr
    write_msr MSR_SVR, 0, 0x1ff
    mov ecx, MSR_ID
    rdmsr
    mov ebx, eax
    shl eax, 8
    mov esp, 0x7000
    sub esp, eax
    .endm
    .macro start_others
    doorbell
    set_up_apic
    write_msr MSR_ICR, 0, ICR_INIT_OTHERS
    write_msr MSR_ICR, 0, ICR_SIPI_OTHERS
    write_msr MSR_ICR, 0, ICR_SIPI_OTHERS
8:  mov eax, dword ptr [READY]
    cmp eax, dword ptr [APS]
    jne 8b
    .endm

    payload boot_exit
    exit_machine 0x31
    payload_end boot_exit

    payload boot_halt
    cli
    hlt
    payload_end boot_halt

    payload boot_spin
    cli
1:  jmp 1b
    payload_end boot_spin

    payload boot_start_then_exit
    start_others
    exit_machine 0x31
    payload_end boot_start_then_exit

    payload boot_start_then_halt
    start_others
    cli
1:  hlt
    jmp 1b
    payload_end boot_start_then_halt

    payload boot_restart_one
    doorbell
    set_up_apic
    mov esi, 0
1:  write_msr MSR_ICR, 1, ICR_INIT
    write_msr MSR_ICR, 1, ICR_SIPI
    write_msr MSR_ICR, 1, ICR_SIPI
    inc esi
2:  cmp dword ptr [COUNT + 4], esi
    jb 2b
    cmp esi, dword ptr [ROUNDS]
    jb 1b
    exit_machine 0x31
    payload_end boot_restart_one

    payload boot_ring
    start_others
    write_msr MSR_ICR, 1, ICR_FIXED_40
1:  sti
    hlt
    jmp 1b
    payload_end boot_ring

    payload boot_ring_spinning
    start_others
    write_msr MSR_ICR, 1, ICR_FIXED_40
    sti
1:  nop
    jmp 1b
    payload_end boot_ring_spinning

    payload boot_nmi
    start_others
    write_msr MSR_ICR, 1, ICR_NMI
    cli
1:  hlt
    jmp 1b
    payload_end boot_nmi

    .macro start_timer
    set_up_apic
    write_msr MSR_TIMER_DIVIDE, 0, 0xb
    write_msr MSR_LVT_TIMER, 0, 0x40
    write_msr MSR_TIMER_INITIAL, 0, 20000000
    .endm

    payload boot_timer_halt
    start_timer
1:  sti
    hlt
    jmp 1b
    payload_end boot_timer_halt

    payload boot_timer_spin
    start_timer
    sti
1:  nop
    jmp 1b
    payload_end boot_timer_spin

    payload boot_deadline_halt
    set_up_apic
    write_msr MSR_LVT_TIMER, 0, 0x40040
    rdtsc
    add eax, 50000000
    adc edx, 0
    mov ecx, MSR_TSC_DEADLINE
    wrmsr
1:  sti
    hlt
    jmp 1b
    payload_end boot_deadline_halt

    payload boot_print
    mov ax, 0x1000
    mov ds, ax
    mov dx, 0x3f8
    cld
1:  mov si, 0
    mov cx, 4096
    rep outsb
    dec dword ptr es:[ROUNDS]
    jnz 1b
    exit_machine 0x31
    payload_end boot_print

    payload boot_popcnt
    mov eax, 0x55
    popcnt ebx, eax
    exit_machine 0x31
    payload_end boot_popcnt

    payload boot_wild_io
    mov dx, 0x1234
    in eax, dx
    mov dword ptr [TOTAL], eax
    mov dx, 0x4321
    out dx, al
    exit_machine 0x31
    payload_end boot_wild_io

    payload boot_charge
    mov al, 5
    mov dx, 0x562
    out dx, al
    exit_machine 0x31
    payload_end boot_charge

    payload boot_dump_apic_base
    mov ecx, MSR_APIC_BASE
    rdmsr
    mov dword ptr [TOTAL], eax
    exit_machine 0x31
    payload_end boot_dump_apic_base

    payload ap_count_and_halt
    set_up_apic
    lock inc dword ptr [COUNT + ebx * 4]
    lock inc dword ptr [READY]
    cli
1:  hlt
    jmp 1b
    payload_end ap_count_and_halt

    payload ap_ring
    set_up_apic
    lock inc dword ptr [READY]
1:  sti
    hlt
    jmp 1b
    payload_end ap_ring

    payload ap_ring_spinning
    set_up_apic
    lock inc dword ptr [READY]
    sti
1:  nop
    jmp 1b
    payload_end ap_ring_spinning

    payload ap_init_boot_cpu
    set_up_apic
    lock inc dword ptr [READY]
    write_msr MSR_ICR, 0, ICR_INIT
    cli
1:  hlt
    jmp 1b
    payload_end ap_init_boot_cpu

    payload handler_ring
    push eax
    push ebx
    push ecx
    push edx
    write_msr MSR_EOI, 0, 0
    mov eax, 1
    lock xadd dword ptr [TOTAL], eax
    inc eax
    cmp eax, dword ptr [ROUNDS]
    jae 1f
    mov ecx, MSR_ID
    rdmsr
    inc eax
    mov edx, eax
    cmp edx, dword ptr [APS]
    jbe 2f
    mov edx, 0
2:  mov ecx, MSR_ICR
    mov eax, ICR_FIXED_40
    wrmsr
    pop edx
    pop ecx
    pop ebx
    pop eax
    iret
1:  exit_machine 0x31
    payload_end handler_ring

    payload handler_exit
    write_msr MSR_EOI, 0, 0
    exit_machine 0x31
    payload_end handler_exit

    .section .note.GNU-stack, "", @progbits
