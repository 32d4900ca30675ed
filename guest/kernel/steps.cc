// The cpuhp step table and the callbacks that belong to no larger subject.
#include "guest/kernel/calibrate.h"
#include "guest/kernel/call.h"
#include "guest/kernel/cpuhp.h"
#include "guest/kernel/rcu/rcu.h"
#include "guest/kernel/sched/smp_call.h"
#include "guest/kernel/smpboot.h"
#include "guest/kernel/tsc_check.h"

namespace sipi {
namespace {

// The per-CPU area of a CPU that is to come: ring, identity, nothing armed.
Error PrepareArea(PerCpu& self, CpuNumber cpu) {
  PerCpu& area = self.kernel->percpu(cpu);
  InitPerCpu(*self.kernel, area, cpu);
  if (self.kernel->scheduler != nullptr) {
    SchedPrepareCpu(*self.kernel, cpu);
    rcu::PrepareCpu(*self.kernel, cpu);
  }
  return Error::kNone;
}

Error PrepareTimers(PerCpu& self, CpuNumber cpu) {
  PerCpu& area = self.kernel->percpu(cpu);
  area.timer_armed_ticks = 0;
  area.timer_fired = 0;
  area.timer_mask_when_fired = 0;
  return Error::kNone;
}

Error StartLocalCpu(PerCpu&, CpuNumber) {
  platform::Charge(abi::Charge::kIdentify);
  return Error::kNone;
}

Error StartCacheControl(PerCpu& self, CpuNumber) {
  if (self.kernel->knobs().cache_setup == abi::CacheSetup::kEach) SetUpCaches();
  return Error::kNone;
}

// Counts this CPU in or out of its core and package.
void CountInTopology(PerCpu& self, CpuNumber cpu, uint32_t delta) {
  Kernel& kernel = *self.kernel;
  const abi::CpuEntry& entry = kernel.entry(cpu);
  platform::AtomicRef<uint32_t> core(kernel.slots[entry.core].core_cpus);
  platform::AtomicRef<uint32_t> package(kernel.slots[entry.package].package_cpus);
  if (kernel.knobs().topology_update == abi::TopologyUpdate::kLockless) {
    core.FetchAdd(delta, std::memory_order_relaxed);
    package.FetchAdd(delta, std::memory_order_relaxed);
    return;
  }
  LockShort(kernel, kernel.topology_lock);
  core.Store(core.Load(std::memory_order_relaxed) + delta, std::memory_order_relaxed);
  package.Store(package.Load(std::memory_order_relaxed) + delta, std::memory_order_relaxed);
  UnlockShort(kernel.topology_lock);
}

Error StartTopology(PerCpu& self, CpuNumber cpu) {
  CountInTopology(self, cpu, 1);
  return Error::kNone;
}

void StopTopology(PerCpu& self, CpuNumber cpu) { CountInTopology(self, cpu, ~0u); }

Error StartOnlineMask(PerCpu& self, CpuNumber cpu) {
  if (self.run_queue != nullptr) OpenCallQueue(self);
  self.kernel->slot(cpu).online = 1;
  self.kernel->online_count.FetchAdd(1, std::memory_order_seq_cst);
  return Error::kNone;
}

void StopOnlineMask(PerCpu& self, CpuNumber cpu) {
  platform::AtomicRef<uint32_t>(self.kernel->slot(cpu).online)
      .Exchange(0, std::memory_order_seq_cst);
  self.kernel->online_count.FetchAdd(~0u, std::memory_order_seq_cst);
  if (self.run_queue != nullptr) CloseCallQueue(self);
}

Error OnlineThreads(PerCpu&, CpuNumber) {
  platform::Charge(abi::Charge::kOnlineSteps);
  return Error::kNone;
}

using abi::CpuhpState;

constexpr CpuhpStep kSteps[] = {
    {CpuhpState::kCreateThreads, Section::kPrepare, true, PrepareArea, nullptr},
    {CpuhpState::kTimersPrepare, Section::kPrepare, true, PrepareTimers, nullptr},
    {CpuhpState::kKickAp, Section::kPrepare, true, KickAp, CancelAp},
    {CpuhpState::kWaitInit, Section::kPrepare, true, WaitAlive, nullptr},
    {CpuhpState::kBringupCpu, Section::kPrepare, true, WaitStartingDone, nullptr},
    {CpuhpState::kApOffline, Section::kStarting, false, StartLocalCpu, nullptr},
    {CpuhpState::kApCachectrlStarting, Section::kStarting, false, StartCacheControl, nullptr},
    {CpuhpState::kApTopologyStarting, Section::kStarting, false, StartTopology, StopTopology},
    {CpuhpState::kApTscSyncStarting, Section::kStarting, false, StartTscCheck, nullptr},
    {CpuhpState::kApTimersStarting, Section::kStarting, false, StartTimers, nullptr},
    {CpuhpState::kApOnline, Section::kStarting, false, StartOnlineMask, StopOnlineMask},
    {CpuhpState::kApOnlineIdle, Section::kOnline, false, nullptr, nullptr},
    {CpuhpState::kApSmpbootThreads, Section::kOnline, true, OnlineThreads, nullptr},
    {CpuhpState::kApActive, Section::kOnline, true, nullptr, nullptr},
};

constexpr bool Ascending() {
  for (size_t i = 1; i < std::size(kSteps); ++i) {
    if (kSteps[i].state <= kSteps[i - 1].state || kSteps[i].section < kSteps[i - 1].section)
      return false;
    if (kSteps[i].section == Section::kStarting && kSteps[i].can_fail) return false;
  }
  return true;
}
static_assert(Ascending(),
              "steps are in order, sections do not interleave, STARTING steps cannot fail");

// First step of a section: the sections follow each other in the table.
constexpr const CpuhpStep* FirstOf(Section section) {
  size_t i = 0;
  while (i < std::size(kSteps) && kSteps[i].section < section) ++i;
  return kSteps + i;
}

}  // namespace

constinit const CpuhpStep* const kCpuhpSectionBegin[] = {
    FirstOf(Section::kPrepare), FirstOf(Section::kStarting), FirstOf(Section::kOnline),
    kSteps + std::size(kSteps)};

}  // namespace sipi
