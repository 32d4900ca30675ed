// Runs of scenarios beyond bring-up, made by hand.
#pragma once

#include "tests/report/records.h"

namespace sipi {

// Four CPUs, two threads a core; approaches none and expedite, one round. none: off in 8 ms with
// three normal grace periods, two CPUs, the lock held for 3 and for 2 ms; on in 4 ms, one wait that
// needed none. expedite: off in 1 ms with three expedited ones, two CPUs; on in 1 ms, one CPU came
// and one failed.
RunRecord SmtRun();

// Two writers on CPUs 0 and 1, two measurements asked for. Grace periods end at 15, 30, 40 and
// 60 us, an expedited one at 35; the window is 20 to 45 us. Durations that count: 8 and 8 us on
// CPU 0; 7, 9 and 1 on CPU 1.
RunRecord ScaleRun();

// Torture that found nothing, on two CPUs.
RunRecord TortureRun();

// One round of readers on four CPUs, `ps` picoseconds a read.
RunRecord RefRun(uint32_t ps);

// Two CPUs' updaters with 400 and 600 callbacks in half a second; the worker of CPU 0 bound itself
// after 10 us, that of CPU 1 ran away once.
RunRecord CallRcuRun();

}  // namespace sipi
