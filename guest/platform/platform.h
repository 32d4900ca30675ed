// The seam: all that guest/kernel sees of the machine it runs on. The build puts one of
// guest/platform/{x86,sim,threads} on the include path, which supplies platform_impl.h; there is
// no #ifdef and no virtual call.
//
// What platform_impl.h defines, in namespace sipi::platform:
//
//   AtomicRef<T>(word)       atomic view of a word of shared memory: Load, Store, Exchange,
//                            CompareExchange, FetchAdd; every call names its memory order
//   Atomic<T>                a word with the same operations
//   Deadline                 a point in time: DeadlineInUs(us), NoDeadline(), Bounded(d),
//                            Expired(d),
//                            Earlier(a, b)
//   SpinUntil(ref, pred, d)  waits until pred(value) holds, true, or the deadline passes, false. On
//                            metal it spins, in the simulator the fiber parks until that word is
//                            stored to. Never write the loop yourself
//   SpinPolitely(ref, pred, slice_us, d)   likewise, and lets another CPU run after each slice: on
//                            metal with Relax()
//   Relax()                  lets another CPU run that this one spins for, where they may share a
//                            core
//   DelayUs(us), DelayUntilUs(begin, us)   waits at least so long, without giving up the CPU
//   NowTicks(), NowNs()      this CPU's clock; ns, deadlines and delays only once SetTicksPerMs was
//                            called
//   ReadPmTimer(), WaitPmTicks(begin, n)   reference clock, 24 bits at 3.579545 MHz
//   MeasureBusKhz(tsc_khz)   local APIC timer against a TSC of known frequency
//   ThisCpu()                the running CPU's PerCpu (guest/kernel/percpu.h)
//   ApicRead, ApicWrite, ApicWriteIcr      local APIC registers, in whichever mode the CPU is
//   InvariantTsc(), HasTscDeadline(), HasTopologyLeaf(), EncryptedGuest()
//                            what the boot CPU can find out
//   WriteTscDeadline(ticks)  IA32_TSC_DEADLINE
//   Context                  a thread's saved registers and stack. InitContext(context, stack,
//                            entry, argument): its first switch calls entry(argument),
//                            interrupts off; entry never returns. SwitchContext(from, to):
//                            leaves one and enters the other; interrupts off; comes back when
//                            `from` is entered again, maybe on another CPU
//   AllocateStack(kernel)    a thread's stack, for good; what InitContext takes as `stack`
//   CurrentThread(), SetCurrentThread(t)   PerCpu::current of the running CPU, in one step
//   IrqDisable(), IrqEnable(), IrqsEnabled()
//   HaltEnabled()            with interrupts off: enables them and halts in one step, so that no
//                            wake-up is lost; returns with interrupts off
//   HaltForever()            parks the CPU, interrupts off
//   CacheSetup()             programs PAT on the running CPU
//   PrepareStartup(kernel)   makes the page that a SIPI starts at ready
//   Trace(event, target, value), TraceAt(ticks, ...), TracePacked(PackTrace(event, target), value)
//                            into the running CPU's ring, no exit
//   Charge(kind)             what a step costs on the profile's machine; nothing where none is
//                            imposed
//   Doorbell(value)          tells the VMM
//   SerialWrite(text, bytes)
//   Exit(code)               ends the machine
//   Panic(file, line, text)  writes the result page and ends the machine
//   Break(fault)             fails on purpose in a way that only this machine has (triple fault,
//                            endless loop ...)
//
// All may be called on any CPU with interrupts on or off unless said otherwise; none allocates.
#pragma once

#include "platform_impl.h"

#define SIPI_PANIC(text) ::sipi::platform::Panic(__FILE__, __LINE__, text)
#define SIPI_ASSERT(cond)           \
  do {                              \
    if (!(cond)) SIPI_PANIC(#cond); \
  } while (false)
