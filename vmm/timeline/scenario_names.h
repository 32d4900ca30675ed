// Names of what abi/scenario.h numbers: of flags, tables and files.
#pragma once

#include "guest/abi/scenario.h"
#include "guest/abi/trace.h"

namespace sipi {

// "none", "expedite", "per-cpu", "hotplug-calls", "write-lock", "rcu-sync", "wake-from-gp".
const char* Name(abi::SmtApproach approach);
const char* Name(abi::WorkerPinning pinning);  // "lazy", "at-start", "first-work"
const char* Name(abi::Preemption preemption);  // "none", "voluntary", "full", "lazy"
const char* Name(abi::RcuFlavour flavour);     // "non-preemptible", "preemptible"
const char* Name(abi::HotplugSteps steps);     // "x86", "pseries"
const char* Name(abi::GracePeriodKind kind);   // "normal", "expedited", "none"
// "short-grace-period", "freed-element", "order" ...: kNone and what there is not: "?".
const char* Name(abi::TortureCheck check);

}  // namespace sipi
