// The switch between two fibers: no system call. The control words of x87 and SSE are the same for all fibers of a
// process and stay.
#include "guest/platform/stack_switch.inc"

    .text
    .p2align 4
    .globl sipi_sim_switch
    .hidden sipi_sim_switch
    .type sipi_sim_switch, @function
sipi_sim_switch:
    switch_stacks
    .size sipi_sim_switch, . - sipi_sim_switch

// A new fiber begins here; fiber.cc makes its first frame.
    .p2align 4
    .globl sipi_sim_fiber_start
    .hidden sipi_sim_fiber_start
    .type sipi_sim_fiber_start, @function
sipi_sim_fiber_start:
    enter_new_stack
    .size sipi_sim_fiber_start, . - sipi_sim_fiber_start

    .section .note.GNU-stack, "", @progbits
