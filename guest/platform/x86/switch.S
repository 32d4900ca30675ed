// The switch between two threads' stacks, interrupts off. What a call must keep (System V psABI, 3.2.1) goes onto the
// stack that is left, and comes from the one that is entered; there is no other state of a thread's in ring 0 here.

    .section .text, "ax"
    .globl sipi_switch_context
sipi_switch_context:                // RDI: where to keep the stack pointer that is left; RSI: the one to go to
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret

// A new thread begins here: context.cc has put its function into R12 and the argument into R13.
    .globl sipi_thread_start
sipi_thread_start:
    movq %r13, %rdi
    call *%r12
    ud2                             // the function never returns

    .section .note.GNU-stack, "", @progbits
