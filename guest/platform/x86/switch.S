// The switch between two threads' stacks, interrupts off. There is no other state of a thread's in ring 0 here.
#include "guest/platform/stack_switch.inc"

    .section .text, "ax"
    .globl sipi_switch_context
sipi_switch_context:
    switch_stacks

// A new thread begins here; context.cc makes its first frame.
    .globl sipi_thread_start
sipi_thread_start:
    enter_new_stack

    .section .note.GNU-stack, "", @progbits
