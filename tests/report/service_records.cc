#include "tests/report/service_records.h"

namespace sipi {
namespace {

using abi::CpuhpState;
using abi::TraceEvent;

constexpr uint32_t kNormal = 0;
constexpr uint32_t kExpedited = 1;
constexpr uint32_t kNeeded = 2;  // abi::GracePeriodKind::kNone
constexpr uint32_t kExpedite = static_cast<uint32_t>(abi::SmtApproach::kExpedite);

ServicesInfo Services(abi::Scenario scenario) {
  ServicesInfo info;
  info.scenario = scenario;
  info.kernel.services = 1;
  return info;
}

void Move(RecordBuilder& run, int64_t begin_us, int64_t end_us, uint16_t cpu, CpuhpState to) {
  run.At(begin_us, 0, TraceEvent::kHotplugBegin, cpu, static_cast<uint32_t>(to))
      .At(begin_us, 0, TraceEvent::kCpusWriteLocked)
      .At(end_us, 0, TraceEvent::kCpusWriteUnlock)
      .At(end_us, 0, TraceEvent::kHotplugEnd, cpu, 0);
}

}  // namespace

RunRecord SmtRun() {
  RecordBuilder run(4);
  for (uint32_t cpu = 0; cpu < 4; ++cpu) run.Online(cpu);
  run.At(0, 0, TraceEvent::kSmtBegin, 1, 0).At(100, 0, TraceEvent::kSyncEnd, 0, kNormal);
  Move(run, 1'000, 4'000, 1, CpuhpState::kOffline);
  run.At(4'100, 1, TraceEvent::kSyncEnd, 0, kNormal);
  Move(run, 5'000, 7'000, 3, CpuhpState::kOffline);
  run.At(7'100, 3, TraceEvent::kSyncEnd, 0, kNormal).At(8'000, 0, TraceEvent::kSmtEnd, 1, 0);
  run.At(10'000, 0, TraceEvent::kSmtBegin, 2, 0).At(10'100, 0, TraceEvent::kSyncEnd, 0, kNeeded);
  Move(run, 11'000, 12'000, 1, CpuhpState::kOnline);
  Move(run, 12'000, 13'000, 3, CpuhpState::kOnline);
  run.At(14'000, 0, TraceEvent::kSmtEnd, 2, 0);
  run.At(20'000, 0, TraceEvent::kSmtBegin, 1, kExpedite);
  for (int i = 0; i < 3; ++i) run.At(20'100 + i, 0, TraceEvent::kSyncEnd, 0, kExpedited);
  Move(run, 20'200, 20'500, 1, CpuhpState::kOffline);
  Move(run, 20'500, 20'800, 3, CpuhpState::kOffline);
  run.At(21'000, 0, TraceEvent::kSmtEnd, 1, 0);
  run.At(22'000, 0, TraceEvent::kSmtBegin, 2, kExpedite);
  Move(run, 22'100, 22'400, 1, CpuhpState::kOnline);
  run.At(23'000, 0, TraceEvent::kSmtEnd, 2, 1);
  run.record().services = Services(abi::Scenario::kSmt);
  run.record().services->knobs.approaches = 3;
  return run.Take();
}

RunRecord ScaleRun() {
  RecordBuilder run(2);
  run.Online(0).Online(1);
  run.At(10, 0, TraceEvent::kSyncBegin)
      .At(15, 0, TraceEvent::kGpEnd)
      .At(16, 0, TraceEvent::kSyncEnd)
      .At(20, 0, TraceEvent::kScaleBegin)
      .At(21, 1, TraceEvent::kScaleBegin)
      .At(22, 0, TraceEvent::kSyncBegin)
      .At(23, 1, TraceEvent::kSyncBegin)
      .At(30, 0, TraceEvent::kGpEnd)
      .At(30, 0, TraceEvent::kSyncEnd)
      .At(30, 1, TraceEvent::kSyncEnd)
      .At(31, 1, TraceEvent::kSyncBegin)
      .At(32, 0, TraceEvent::kSyncBegin)
      .At(35, 1, TraceEvent::kExpEnd)
      .At(40, 0, TraceEvent::kGpEnd)
      .At(40, 0, TraceEvent::kSyncEnd)
      .At(40, 1, TraceEvent::kSyncEnd)
      .At(41, 0, TraceEvent::kScaleEnd)
      .At(43, 1, TraceEvent::kSyncBegin)
      .At(44, 1, TraceEvent::kSyncEnd)
      .At(45, 1, TraceEvent::kScaleEnd)
      .At(50, 0, TraceEvent::kSyncBegin)
      .At(60, 0, TraceEvent::kGpEnd)
      .At(61, 0, TraceEvent::kSyncEnd);
  run.record().services = Services(abi::Scenario::kRcuScale);
  run.record().services->knobs.measurements = 2;
  return run.Take();
}

RunRecord TortureRun() {
  RecordBuilder run(2);
  run.Online(0).Online(1);
  run.At(1'000, 0, TraceEvent::kHotplugBegin, 1, 0)
      .At(4'000, 0, TraceEvent::kHotplugEnd, 1, 0)
      .At(5'000, 0, TraceEvent::kHotplugBegin, 1, static_cast<uint32_t>(CpuhpState::kOnline))
      .At(12'000, 0, TraceEvent::kHotplugEnd, 1, 0);
  run.record().services = Services(abi::Scenario::kTorture);
  abi::TortureCounters& counters = run.record().services->counters;
  counters.pipe[0] = 1000;
  counters.pipe[1] = 20;
  counters.batch[0] = 1020;
  counters.freed[0] = 50;
  counters.reads = 1020;
  counters.updates = 60;
  counters.gp_seq_begin = 0xfffffffffffffff0;
  counters.gp_seq_end = 16;
  counters.online_ok = counters.online_tried = 1;
  counters.offline_ok = counters.offline_tried = 1;
  counters.callbacks_queued = counters.callbacks_run = 70;
  counters.cookie_checks = 9;
  return run.Take();
}

RunRecord RefRun(uint32_t ps) {
  RecordBuilder run(4);
  run.Online(0).At(0, 0, TraceEvent::kRefPoint, 0, ps);
  run.record().services = ServicesInfo();
  return run.Take();
}

RunRecord CallRcuRun() {
  RecordBuilder run(2);
  run.Online(0).Online(1);
  run.At(0, 0, TraceEvent::kScaleBegin)
      .At(10, 0, TraceEvent::kWorkerPinned, 0, 10)
      .At(20, 0, TraceEvent::kWorkerRanAway, 1)
      .At(400'000, 1, TraceEvent::kScaleEnd, 0, 600)
      .At(500'000, 0, TraceEvent::kScaleEnd, 0, 400);
  run.record().services = ServicesInfo();
  run.record().services->knobs.measurements = 5000;  // of each of the two, had there been time
  run.record().services->counters.callbacks_queued = 1007;
  run.record().services->counters.callbacks_run = 1007;
  return run.Take();
}

}  // namespace sipi
