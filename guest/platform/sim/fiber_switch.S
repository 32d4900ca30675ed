// The switch between two stacks. A fiber costs no system call: what a call must keep (System V psABI, 3.2.1: RBX, RBP,
// R12 to R15) goes onto the stack that is left, and comes from the one that is entered. The control words of x87 and
// SSE are the same for all fibers of a process and stay.

    .text
    .p2align 4
    .globl sipi_sim_switch
    .hidden sipi_sim_switch
    .type sipi_sim_switch, @function
sipi_sim_switch:                    // RDI: where to keep the stack pointer that is left; RSI: the one to go to
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
    .size sipi_sim_switch, . - sipi_sim_switch

// Where a new fiber's first switch returns to. fiber.cc has put the function into R12 and its argument into R13.
    .p2align 4
    .globl sipi_sim_fiber_start
    .hidden sipi_sim_fiber_start
    .type sipi_sim_fiber_start, @function
sipi_sim_fiber_start:
    xorl %ebp, %ebp                 // the end of the chain of frames
    movq %r13, %rdi
    call *%r12
    ud2                             // the function never returns
    .size sipi_sim_fiber_start, . - sipi_sim_fiber_start

    .section .note.GNU-stack, "", @progbits
