// Function calls on one other CPU (smp_call_function_single), and stopping all of them.
#pragma once

#include "guest/kernel/sched/thread.h"

namespace sipi {

// Runs function(argument) on `cpu` in interrupt context, interrupts off; with `wait`, returns after
// it. On the running CPU: at once. False: that CPU is not online, nothing was done. Interrupts are
// enabled; with `wait` in thread context only. What is queued at a CPU that goes offline runs there
// before it dies.
bool CallFunctionSingle(Kernel& kernel, CpuNumber cpu, void (*function)(void*), void* argument,
                        bool wait);

// The function call interrupt's work.
void RunCallQueue(PerCpu& self);
// Calls come to this CPU from now on, or no more: those that are here run first. The CPU itself,
// interrupts off.
void OpenCallQueue(PerCpu& self);
void CloseCallQueue(PerCpu& self);

// stop_machine(): brings every online CPU to its stopper thread with interrupts off, runs
// function(argument) on `cpu`, and lets all go. Thread context, with the CPU set held
// (cpus_read_lock or cpus_write_lock). All that its preparation costs grows with the number of
// CPUs.
void StopMachine(Kernel& kernel, CpuNumber cpu, void (*function)(void*), void* argument);
// stop_one_cpu(): runs function(argument) on that CPU's stopper thread only, interrupts on.
void StopOneCpu(Kernel& kernel, CpuNumber cpu, void (*function)(void*), void* argument);

}  // namespace sipi
