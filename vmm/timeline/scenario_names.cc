#include "vmm/timeline/scenario_names.h"

namespace sipi {

const char* Name(abi::SmtApproach approach) {
  switch (approach) {
    case abi::SmtApproach::kNone:
      return "none";
    case abi::SmtApproach::kExpedite:
      return "expedite";
    case abi::SmtApproach::kPerCpu:
      return "per-cpu";
    case abi::SmtApproach::kHotplugCalls:
      return "hotplug-calls";
    case abi::SmtApproach::kWriteLock:
      return "write-lock";
    case abi::SmtApproach::kRcuSync:
      return "rcu-sync";
    case abi::SmtApproach::kWakeFromGp:
      return "wake-from-gp";
  }
  return "?";
}

const char* Name(abi::WorkerPinning pinning) {
  switch (pinning) {
    case abi::WorkerPinning::kLazy:
      return "lazy";
    case abi::WorkerPinning::kAtStart:
      return "at-start";
    case abi::WorkerPinning::kAtFirstWork:
      return "first-work";
  }
  return "?";
}

const char* Name(abi::Preemption preemption) {
  switch (preemption) {
    case abi::Preemption::kNone:
      return "none";
    case abi::Preemption::kVoluntary:
      return "voluntary";
    case abi::Preemption::kFull:
      return "full";
    case abi::Preemption::kLazy:
      return "lazy";
  }
  return "?";
}

const char* Name(abi::RcuFlavour flavour) {
  return flavour == abi::RcuFlavour::kPreemptible ? "preemptible" : "non-preemptible";
}

const char* Name(abi::HotplugSteps steps) {
  return steps == abi::HotplugSteps::kPseries ? "pseries" : "x86";
}

const char* Name(abi::TortureCheck check) {
  using abi::TortureCheck;
  switch (check) {
    case TortureCheck::kNone:
      break;
    case TortureCheck::kShortGracePeriod:
      return "short-grace-period";
    case TortureCheck::kFreedElement:
      return "freed-element";
    case TortureCheck::kOrder:
      return "order";
    case TortureCheck::kCookieInReader:
      return "cookie-in-reader";
    case TortureCheck::kCookieNotDone:
      return "cookie-not-done";
    case TortureCheck::kTooManyCookies:
      return "too-many-cookies";
    case TortureCheck::kNesting:
      return "expedite-nesting";
    case TortureCheck::kBarrier:
      return "barrier";
    case TortureCheck::kFlood:
      return "flood";
    case TortureCheck::kLostCallback:
      return "lost-callback";
    case TortureCheck::kGpHang:
      return "no-grace-period";
    case TortureCheck::kHotplug:
      return "hotplug";
    case TortureCheck::kExpGpHang:
      return "no-expedited-grace-period";
  }
  return "?";
}

const char* Name(abi::GracePeriodKind kind) {
  switch (kind) {
    case abi::GracePeriodKind::kNormal:
      return "normal";
    case abi::GracePeriodKind::kExpedited:
      return "expedited";
    case abi::GracePeriodKind::kNone:
      return "none";
  }
  return "?";
}

}  // namespace sipi
