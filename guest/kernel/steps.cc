// The cpuhp step table and the callbacks that belong to no larger subject.
#include "guest/abi/step_failure.h"
#include "guest/kernel/calibrate.h"
#include "guest/kernel/call.h"
#include "guest/kernel/cpuhp.h"
#include "guest/kernel/hotplug/step_calls.h"
#include "guest/kernel/smpboot.h"
#include "guest/kernel/tsc_check.h"

namespace sipi {
namespace {

// The per-CPU area of a CPU that is to come: ring, identity, nothing armed.
Error PrepareArea(PerCpu& self, CpuNumber cpu) {
  PerCpu& area = self.kernel->percpu(cpu);
  InitPerCpu(*self.kernel, area, cpu);
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

Error StopTopology(PerCpu& self, CpuNumber cpu) {
  CountInTopology(self, cpu, ~0u);
  return Error::kNone;
}

Error StartOnlineMask(PerCpu& self, CpuNumber cpu) {
  self.kernel->slot(cpu).online = 1;
  self.kernel->online_count.FetchAdd(1, std::memory_order_seq_cst);
  return Error::kNone;
}

Error StopOnlineMask(PerCpu& self, CpuNumber cpu) {
  platform::AtomicRef<uint32_t>(self.kernel->slot(cpu).online)
      .Exchange(0, std::memory_order_seq_cst);
  self.kernel->online_count.FetchAdd(~0u, std::memory_order_seq_cst);
  return Error::kNone;
}

Error OnlineThreads(PerCpu&, CpuNumber) {
  platform::Charge(abi::Charge::kOnlineSteps);
  return Error::kNone;
}

// The threads of a CPU sleep while it is off: what is left is what that costs the machine.
Error ParkThreads(PerCpu&, CpuNumber) {
  platform::Charge(abi::Charge::kOnlineSteps);
  return Error::kNone;
}

using abi::CpuhpState;

// Which tables a step is in.
constexpr uint32_t kPlain = 1;
constexpr uint32_t kX86 = 2;      // with services
constexpr uint32_t kPseries = 4;  // with services and drivers that wait
constexpr uint32_t kServices = kX86 | kPseries;
constexpr uint32_t kAll = kPlain | kServices;

struct Row {
  uint32_t tables;
  CpuhpStep step;
};

constexpr Row kRows[] = {
    {kPlain, {CpuhpState::kCreateThreads, Section::kPrepare, true, PrepareArea, nullptr}},
    {kServices, {CpuhpState::kCreateThreads, Section::kPrepare, true, PrepareThreads, nullptr}},
    {kPseries, {CpuhpState::kCpuidleDead, Section::kPrepare, true, nullptr, LeaveCpuidleDead}},
    {kServices, {CpuhpState::kRcutreePrep, Section::kPrepare, true, PrepareRcu, FinishRcu}},
    {kPlain, {CpuhpState::kTimersPrepare, Section::kPrepare, true, PrepareTimers, nullptr}},
    {kServices, {CpuhpState::kTimersPrepare, Section::kPrepare, true, PrepareTimers, TakeTimers}},
    {kPlain, {CpuhpState::kKickAp, Section::kPrepare, true, KickAp, CancelAp}},
    {kServices, {CpuhpState::kKickAp, Section::kPrepare, true, KickAp, CancelKicked}},
    {kPlain, {CpuhpState::kWaitInit, Section::kPrepare, true, WaitAlive, nullptr}},
    {kServices, {CpuhpState::kWaitInit, Section::kPrepare, true, AwaitAlive, nullptr}},
    {kPlain, {CpuhpState::kBringupCpu, Section::kPrepare, true, WaitStartingDone, nullptr}},
    {kServices, {CpuhpState::kBringupCpu, Section::kPrepare, true, ReleaseAndAwait, nullptr}},
    {kPlain, {CpuhpState::kApOffline, Section::kStarting, false, StartLocalCpu, nullptr}},
    {kServices, {CpuhpState::kApOffline, Section::kStarting, false, StartWithRcu, nullptr}},
    {kAll,
     {CpuhpState::kApCachectrlStarting, Section::kStarting, false, StartCacheControl, nullptr}},
    {kServices, {CpuhpState::kApSchedStarting, Section::kStarting, false, StartScheduler, nullptr}},
    {kServices, {CpuhpState::kApRcutreeDying, Section::kStarting, false, nullptr, RcuDying}},
    {kAll,
     {CpuhpState::kApTopologyStarting, Section::kStarting, false, StartTopology, StopTopology}},
    {kAll, {CpuhpState::kApTscSyncStarting, Section::kStarting, false, StartTscCheck, nullptr}},
    {kAll, {CpuhpState::kApTimersStarting, Section::kStarting, false, StartTimers, nullptr}},
    {kServices, {CpuhpState::kApSmpcfdDying, Section::kStarting, false, OpenCalls, CloseCalls}},
    {kAll, {CpuhpState::kApOnline, Section::kStarting, false, StartOnlineMask, StopOnlineMask}},
    {kServices, {CpuhpState::kTeardownCpu, Section::kTeardown, true, nullptr, TeardownCpu}},
    {kAll, {CpuhpState::kApOnlineIdle, Section::kOnline, false, nullptr, nullptr}},
    {kPlain, {CpuhpState::kApSmpbootThreads, Section::kOnline, true, OnlineThreads, nullptr}},
    {kServices,
     {CpuhpState::kApSmpbootThreads, Section::kOnline, true, OnlineThreads, ParkThreads}},
    {kServices, {CpuhpState::kApRcutreeOnline, Section::kOnline, true, OnlineRcu, OfflineRcu}},
    {kPseries, {CpuhpState::kApOnlineDyn, Section::kOnline, true, EnterCpuidle, nullptr}},
    {kPlain, {CpuhpState::kApActive, Section::kOnline, true, nullptr, nullptr}},
    {kServices, {CpuhpState::kApActive, Section::kOnline, true, Activate, DeactivateAndWait}},
};

constexpr bool FailWhereTheyMay() {
  for (const Row& row : kRows) {
    if (row.step.can_fail != abi::StepCanFail(row.step.state)) return false;
  }
  return true;
}
static_assert(FailWhereTheyMay(), "the command refuses to have others fail");

// Which of the tables a state that may fail is in, all its rows together.
constexpr uint32_t TablesOf(CpuhpState state) {
  uint32_t tables = 0;
  for (const Row& row : kRows) tables |= row.step.state == state ? row.tables : 0;
  return tables;
}

constexpr bool AreWhereTheyAreSaidToBe() {
  using abi::HotplugSteps;
  for (const Row& row : kRows) {
    const CpuhpState state = row.step.state;
    if (!row.step.can_fail) continue;
    const uint32_t said = (abi::HasStep(state, false, HotplugSteps::kX86) ? kPlain : 0) |
                          (abi::HasStep(state, true, HotplugSteps::kX86) ? kX86 : 0) |
                          (abi::HasStep(state, true, HotplugSteps::kPseries) ? kPseries : 0);
    if (said != TablesOf(state)) return false;
  }
  return true;
}
static_assert(AreWhereTheyAreSaidToBe(), "the command refuses steps that a kernel does not have");

constexpr size_t CountOf(uint32_t table) {
  size_t count = 0;
  for (const Row& row : kRows) count += (row.tables & table) != 0 ? 1u : 0u;
  return count;
}

template <uint32_t kTable>
struct StepList {
  CpuhpStep steps[CountOf(kTable)];
};

template <uint32_t kTable>
constexpr StepList<kTable> Pick() {
  StepList<kTable> list{};
  size_t count = 0;
  for (const Row& row : kRows) {
    if ((row.tables & kTable) != 0) list.steps[count++] = row.step;
  }
  return list;
}

template <uint32_t kTable>
constexpr StepList<kTable> kSteps = Pick<kTable>();

template <uint32_t kTable>
constexpr bool Ascending() {
  const auto& steps = kSteps<kTable>.steps;
  for (size_t i = 0; i < std::size(steps); ++i) {
    if (steps[i].section == Section::kStarting && steps[i].can_fail) return false;
    if (i == 0) continue;
    if (steps[i].state <= steps[i - 1].state || steps[i].section < steps[i - 1].section)
      return false;
  }
  return true;
}
static_assert(Ascending<kPlain>() && Ascending<kX86>() && Ascending<kPseries>(),
              "steps are in order, sections do not interleave, STARTING steps cannot fail");

// First step of a section: the sections follow each other in the table.
template <uint32_t kTable>
constexpr const CpuhpStep* FirstOf(Section section) {
  const auto& steps = kSteps<kTable>.steps;
  size_t i = 0;
  while (i < std::size(steps) && steps[i].section < section) ++i;
  return steps + i;
}

template <uint32_t kTable>
constexpr CpuhpTable TableOf() {
  return {{FirstOf<kTable>(Section::kPrepare), FirstOf<kTable>(Section::kStarting),
           FirstOf<kTable>(Section::kTeardown), FirstOf<kTable>(Section::kOnline),
           kSteps<kTable>.steps + std::size(kSteps<kTable>.steps)}};
}

constinit const CpuhpTable kPseriesSteps = TableOf<kPseries>();

}  // namespace

constinit const CpuhpTable kPlainSteps = TableOf<kPlain>();
constinit const CpuhpTable kServiceSteps = TableOf<kX86>();

const CpuhpTable& PluggedSteps(abi::HotplugSteps steps) {
  return steps == abi::HotplugSteps::kPseries ? kPseriesSteps : kServiceSteps;
}

}  // namespace sipi
