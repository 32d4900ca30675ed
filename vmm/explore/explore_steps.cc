// What the trace says of a CPU's way through the steps of the table.
#include <iterator>

#include "absl/strings/str_cat.h"
#include "vmm/explore/remains.h"

namespace sipi {
namespace {

using abi::CpuhpState;
using abi::TraceEvent;

// Plain bring-up's steps, the control CPU's and the AP's own, each behind the state that a CPU has
// where none of them is done.
constexpr CpuhpState kPrepare[] = {CpuhpState::kOffline,       CpuhpState::kCreateThreads,
                                   CpuhpState::kTimersPrepare, CpuhpState::kKickAp,
                                   CpuhpState::kWaitInit,      CpuhpState::kBringupCpu};
constexpr CpuhpState kOwn[] = {CpuhpState::kBringupCpu,
                               CpuhpState::kApOffline,
                               CpuhpState::kApCachectrlStarting,
                               CpuhpState::kApTopologyStarting,
                               CpuhpState::kApTscSyncStarting,
                               CpuhpState::kApTimersStarting,
                               CpuhpState::kApOnline,
                               CpuhpState::kApOnlineIdle,
                               CpuhpState::kApSmpbootThreads,
                               CpuhpState::kApActive};

// Follows one CPU through one list of steps: each is entered from the one below it; once a step
// fails all that are done are undone, from the last one down to none, each once.
class Walk {
 public:
  explicit Walk(std::span<const CpuhpState> states) : states_(states) {}

  bool at_bottom() const { return at_ == 0; }

  // Empty, or what is wrong.
  std::string Enter(uint32_t value) {
    const auto state = static_cast<CpuhpState>(value);
    if (at_ + 1 < states_.size() && states_[at_ + 1] == state && (!down_ || at_bottom())) {
      ++at_;
      down_ = false;
      return "";
    }
    if (at_ > 0 && states_[at_ - 1] == state) {
      --at_;
      down_ = true;
      return "";
    }
    return absl::StrCat("came from ", abi::Name(states_[at_]), down_ ? ", on its way down," : "",
                        " to ", abi::Name(state));
  }

 private:
  std::span<const CpuhpState> states_;
  size_t at_ = 0;
  bool down_ = false;
};

// What a step is there for has been done when the next one is entered.
class Work {
 public:
  explicit Work(const abi::Knobs& knobs) : knobs_(knobs) {}

  void See(TraceEvent event) {
    caches_ = caches_ || event == TraceEvent::kCacheSetup;
    checked_ = checked_ || event == TraceEvent::kTscCheckEnd;
    calibrated_ = calibrated_ || event == TraceEvent::kCalibrateBegin ||
                  event == TraceEvent::kCalibrateReused;
  }

  // Entering that state from below. Empty, or what was left out.
  std::string Enter(CpuhpState state) {
    switch (state) {
      case CpuhpState::kApOffline:
        caches_ = checked_ = calibrated_ = false;
        return "";
      case CpuhpState::kApTopologyStarting:
        return caches_ || knobs_.cache_setup != abi::CacheSetup::kEach ? "" : "set up no caches";
      case CpuhpState::kApTimersStarting:
        return checked_ || knobs_.tsc_check == 0 ? "" : "checked no TSC";
      case CpuhpState::kApOnline:
        return calibrated_ ? "" : "calibrated no timer";
      default:
        return "";
    }
  }

 private:
  const abi::Knobs& knobs_;
  bool caches_ = false;
  bool checked_ = false;
  bool calibrated_ = false;
};

std::string CheckPrepared(const Remains& remains, uint32_t cpu) {
  Walk walk(kPrepare);
  for (const abi::TraceRecord& record : remains.ring(0)) {
    if (record.event != TraceEvent::kCpuhpEnter || record.target != cpu) continue;
    const std::string wrong = walk.Enter(record.value);
    if (!wrong.empty()) return absl::StrCat("the control CPU's way with CPU ", cpu, " ", wrong);
  }
  return "";
}

}  // namespace

std::string CheckSteps(const Remains& remains, uint32_t cpu) {
  std::string wrong = CheckPrepared(remains, cpu);
  if (!wrong.empty()) return wrong;
  Walk walk(kOwn);
  Work work(remains.explored().config.knobs);
  uint32_t before = 0;
  for (const abi::TraceRecord& record : remains.ring(cpu)) {
    work.See(record.event);
    if (record.event != TraceEvent::kCpuhpEnter || record.target != cpu) continue;
    wrong = walk.Enter(record.value);
    if (wrong.empty() && record.value > before) {
      wrong = work.Enter(static_cast<CpuhpState>(record.value));
    }
    before = record.value;
    if (!wrong.empty()) return absl::StrCat("CPU ", cpu, " ", wrong);
  }
  const auto sync = static_cast<abi::SyncState>(remains.slot(cpu).sync_state);
  if (sync == abi::SyncState::kDead && !walk.at_bottom() &&
      !remains.simulator().Harmed(CpuNumber(cpu))) {
    return absl::StrCat("CPU ", cpu, " is dead and has not undone all of its steps");
  }
  return "";
}

}  // namespace sipi
