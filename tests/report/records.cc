#include "tests/report/records.h"

#include <utility>

namespace sipi {
namespace {

using abi::CpuhpState;
using abi::TraceEvent;

constexpr uint32_t kSipi = 0x0608;  // ICR bits 31:0 of a start-up IPI with vector 8
constexpr uint32_t kInit = 0x4500;  // INIT, assert

// The kick of one AP by CPU 0, until the wait for it.
void Kick(RecordBuilder& run, int64_t t, uint16_t ap) {
  run.Enter(t, 0, ap, CpuhpState::kCreateThreads)
      .Enter(t + 5, 0, ap, CpuhpState::kKickAp)
      .At(t + 10, 0, TraceEvent::kKickBegin, ap)
      .At(t + 12, 0, TraceEvent::kIcrWrite, ap, kInit)
      .At(t + 20, 0, TraceEvent::kIcrWrite, ap, kSipi)
      .At(t + 25, ap, TraceEvent::kSipiDelivered, 0, 8)
      .At(t + 40, 0, TraceEvent::kIcrWrite, ap, kSipi)
      .At(t + 50, 0, TraceEvent::kKickEnd, ap)
      .Enter(t + 55, 0, ap, CpuhpState::kBringupCpu)
      .At(t + 60, 0, TraceEvent::kWaitAliveBegin, ap);
}

void ComeUp(RecordBuilder& run, int64_t t, uint16_t ap) {
  run.At(t + 100, ap, TraceEvent::kFirstInstruction)
      .At(t + 110, ap, TraceEvent::kLongMode)
      .At(t + 150, ap, TraceEvent::kAlive)
      .At(t + 160, 0, TraceEvent::kWaitAliveEnd, ap)
      .At(t + 165, 0, TraceEvent::kRelease, ap)
      .At(t + 170, ap, TraceEvent::kReleased)
      .Enter(t + 170, ap, ap, CpuhpState::kApOffline)
      .At(t + 180, ap, TraceEvent::kCalibrateBegin)
      .At(t + 230, ap, TraceEvent::kCalibrateEnd, 0, 2'596'144)
      .Enter(t + 250, ap, ap, CpuhpState::kApOnlineIdle)
      .Enter(t + 300, ap, ap, CpuhpState::kApActive)
      .At(t + 400, ap, TraceEvent::kOnline, ap)
      .Online(ap);
}

void Begin(RecordBuilder& run) {
  run.At(0, kVmTrack, TraceEvent::kVmCreated)
      .At(50, 0, TraceEvent::kBootEntry)
      .At(90, 0, TraceEvent::kSmpbootBegin)
      .At(95, 0, TraceEvent::kPassBegin)
      .Online(0);
}

}  // namespace

RecordBuilder::RecordBuilder(uint32_t cpus) {
  record_.host = {.kvm_module = "kvm_test", .cpu = "A CPU", .cores = 2, .kernel = "6.1.0"};
  record_.irqchip = "user";
  record_.apic = "x2apic";
  record_.strategy = "serial";
  record_.profile = "native";
  record_.driver = "guest";
  record_.seed = 7;
  record_.cpus_offered = cpus;
  record_.cpus_wanted = cpus;
  record_.smt_control = "notsupported";
  record_.counters = {{"exits", 12}, {"ipis", 6}};
  for (uint32_t cpu = 0; cpu < cpus; ++cpu) {
    CpuFinal final_state;
    final_state.cpu = CpuNumber(cpu);
    final_state.apic_id = ApicId(cpu * 2);
    record_.cpus.push_back(std::move(final_state));
  }
}

RecordBuilder& RecordBuilder::At(int64_t t_us, int32_t cpu, TraceEvent name, uint16_t target,
                                 uint32_t value) {
  record_.events.push_back(
      {.t_ns = t_us * 1000, .cpu = cpu, .name = name, .target = target, .value = value});
  return *this;
}

RecordBuilder& RecordBuilder::Online(uint32_t cpu) {
  CpuFinal& final_state = record_.cpus[cpu];
  final_state.online = true;
  final_state.sync_state = abi::SyncState::kOnline;
  final_state.cpuhp_state = CpuhpState::kOnline;
  ++record_.cpus_online;
  return *this;
}

RunRecord RecordBuilder::Take() { return std::move(record_); }

RunRecord SerialRun() {
  RecordBuilder run(3);
  Begin(run);
  Kick(run, 100, 1);
  ComeUp(run, 100, 1);
  Kick(run, 500, 2);
  ComeUp(run, 500, 2);
  run.At(905, 0, TraceEvent::kPassEnd)
      .At(910, 0, TraceEvent::kSmpbootEnd, 0, 3)
      .At(950, kVmTrack, TraceEvent::kRunEnd);
  return run.Take();
}

RunRecord PartialRun() {
  RecordBuilder run(3);
  Begin(run);
  Kick(run, 100, 1);
  ComeUp(run, 100, 1);
  Kick(run, 500, 2);
  run.At(10'000, 0, TraceEvent::kTimeout, 2, static_cast<uint32_t>(abi::SyncState::kKicked))
      .At(10'001, 0, TraceEvent::kWaitAliveEnd, 2)
      .At(10'005, 0, TraceEvent::kPassEnd)
      .At(10'010, 0, TraceEvent::kSmpbootEnd, 0, 2)
      .At(10'050, kVmTrack, TraceEvent::kRunEnd);
  run.record().outcome = Outcome::kPartial;
  run.record().diagnosis = "CPU 2 did not report alive within 9 ms";
  run.record().cpus[2].sync_state = abi::SyncState::kShouldDie;
  run.record().cpus[2].cpuhp_state = CpuhpState::kBringupCpu;
  run.record().cpus[2].error = 1;
  run.record().cpus[2].doing = "waiting for SIPI";
  return run.Take();
}

RunRecord BroadcastRun() {
  RecordBuilder run(4);
  run.record().strategy = "broadcast";
  run.At(0, 0, TraceEvent::kBootEntry).Online(0);
  run.At(0, 0, TraceEvent::kSmpbootBegin);
  run.At(10, 0, TraceEvent::kKickBegin, abi::kAllTargets);
  run.At(12, 0, TraceEvent::kIcrWrite, abi::kAllTargets, 0xC4500);
  run.At(20, 0, TraceEvent::kIcrWrite, abi::kAllTargets, 0xC0608);
  for (uint16_t i = 1; i <= 3; ++i) run.At(20 + 2 * i, i, TraceEvent::kSipiDelivered, 0, 8);
  run.At(30, 0, TraceEvent::kKickEnd, abi::kAllTargets);
  for (uint16_t i = 1; i <= 3; ++i) {
    run.At(80 + 20 * i, i, TraceEvent::kAlive).At(80 + 20 * i, i, TraceEvent::kReleased);
  }
  for (uint16_t i = 1; i <= 3; ++i) run.Enter(180 + 20 * i, i, i, CpuhpState::kApOnlineIdle);
  for (uint16_t i = 1; i <= 3; ++i) run.At(280 + 20 * i, i, TraceEvent::kOnline, i).Online(i);
  run.At(350, 0, TraceEvent::kSmpbootEnd, 0, 4);
  return run.Take();
}

}  // namespace sipi
