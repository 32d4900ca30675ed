#include "vmm/machine/simulated_run.h"

#include <algorithm>
#include <deque>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "guest/abi/percpu.h"
#include "guest/platform/sim/simulator.h"
#include "vmm/base/status_macros.h"
#include "vmm/cpu/cpuid.h"
#include "vmm/cpu/host_limits.h"
#include "vmm/device/output_stage.h"
#include "vmm/load/params.h"
#include "vmm/machine/record_builder.h"
#include "vmm/machine/torture_so_far.h"

namespace sipi {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;
constexpr size_t kSerialBufferBytes = 1 << 20;
constexpr int64_t kDrainMs = 2'000;
// 512 MiB, and five times as much once they are sorted into a timeline. The same on every host, so
// that a run is.
constexpr uint64_t kSpareRecords = uint64_t{1} << 25;

absl::Status CheckSimulated(const RunConfig& config) {
  if (config.driver == abi::Driver::kHost) {
    return absl::InvalidArgumentError(
        "--driver: the simulator has no VMM that could sequence; use --driver=guest, or "
        "--machine=kvm");
  }
  if (config.irqchip != IrqchipKind::kUser) {
    return absl::InvalidArgumentError(
        "--irqchip: the simulator's interrupt fabric is sipi's own APIC model; use --irqchip=user, "
        "or --machine=kvm");
  }
  if (config.topology.cpu_count() > kMaxSimulatedCpus) {
    return absl::InvalidArgumentError(
        absl::StrCat("the simulator takes at most ", kMaxSimulatedCpus,
                     " CPUs; use fewer (--cpus, --topology or the profile's)"));
  }
  return CheckApicMode(config.topology, config.apic_mode);
}

sim::Latency LatencyOf(const Latency& latency) {
  return {static_cast<uint64_t>(latency.ns), static_cast<uint64_t>(latency.jitter_ns)};
}

sim::Charges ChargesOf(const Profile& profile) {
  sim::Charges charges;
  const auto set = [&charges](abi::Charge kind, const Latency& latency) {
    charges[static_cast<size_t>(kind)] = LatencyOf(latency);
  };
  set(abi::Charge::kStartup, profile.startup);
  set(abi::Charge::kInit, profile.init);
  set(abi::Charge::kMicrocode, profile.microcode);
  set(abi::Charge::kCacheSetup, profile.cache_setup);
  set(abi::Charge::kIdentify, profile.identify);
  set(abi::Charge::kOnlineSteps, profile.online_steps);
  set(abi::Charge::kSchedDomains, profile.sched_domains);
  return charges;
}

sim::Options OptionsOf(const RunConfig& config, const ArenaLayout& arena) {
  sim::Options options;
  for (uint32_t cpu = 0; cpu < config.topology.cpu_count(); ++cpu) {
    const CpuPlace& place = config.topology.places[cpu];
    sim::CpuPlace its;
    its.apic_id = place.apic_id;
    its.package = place.package;
    if (config.fault.kind == abi::Fault::kTscAhead && config.fault.cpu == cpu) {
      its.tsc_offset_ticks = static_cast<int64_t>(config.fault.value);
    }
    const auto& lies = config.firmware_lies;
    if (std::find(lies.begin(), lies.end(), cpu) != lies.end()) {
      its.shown_apic_id = FirmwareLie(place.apic_id);
    }
    options.cpus.push_back(its);
  }
  options.seed = config.seed;
  options.time_limit_ns = static_cast<uint64_t>(config.time_limit_ms) * kNsPerMs;
  options.charges = ChargesOf(config.profile);
  if (config.profile.ipi.ns != 0) options.costs.ipi = LatencyOf(config.profile.ipi);
  options.host_cores = config.host_cores;
  options.steal = {.period_ns = config.steal.period_ms * kNsPerMs,
                   .min_ns = config.steal.min_ms * kNsPerMs,
                   .max_ns = config.steal.max_ms * kNsPerMs};
  options.has_tsc_deadline = !config.hidden.tsc_deadline;
  options.spare_records = kSpareRecords;
  options.memory_bytes = arena.end.value;
  options.boot_params = BuildBootParams(config, arena, options.tsc_khz);
  return options;
}

// The host's records as the logs that the timeline is collected from: the VM's, then the CPUs'.
std::deque<HostLog> LogsOf(const sim::Simulator& simulator, uint32_t cpus) {
  std::vector<size_t> counts(cpus + size_t{1});
  const auto track = [](const sim::HostRecord& r) {
    return static_cast<size_t>(int64_t{r.cpu} + 1);
  };
  for (const sim::HostRecord& each : simulator.host_records()) ++counts[track(each)];
  std::deque<HostLog> logs;
  for (const size_t count : counts) logs.emplace_back(count);
  for (const sim::HostRecord& each : simulator.host_records()) {
    logs[track(each)].EmitAt(each.record.tsc, each.record.event, each.record.target,
                             each.record.value);
  }
  return logs;
}

// The ring that a CPU's header tells of, and what followed once it was full. The guest is this very
// program, so it is believed.
void AddRings(const sim::Simulator& simulator, const ArenaLayout& arena, uint32_t cpu,
              std::vector<GuestRing>& rings) {
  GuestRing ring;
  ring.cpu = static_cast<int32_t>(cpu);
  const auto& header = *reinterpret_cast<const abi::PerCpuHeader*>(
      simulator.base() + arena.percpu.value + uint64_t{cpu} * arena.percpu_stride_bytes);
  if (header.ring_begin == 0) return;
  const uint64_t written = (header.ring_cursor - header.ring_begin) / sizeof(abi::TraceRecord);
  const uint64_t capacity = (header.ring_end - header.ring_begin) / sizeof(abi::TraceRecord);
  ring.records = {reinterpret_cast<const abi::TraceRecord*>(header.ring_begin),
                  std::min(written, capacity)};
  rings.push_back(ring);
  ring.records = simulator.spare_records(CpuNumber(cpu));
  ring.lost = written - std::min(written, capacity) - ring.records.size();
  rings.push_back(ring);
}

std::map<std::string, uint64_t> CountersOf(const sim::Stats& stats) {
  return {{"inits", stats.inits_taken},
          {"inits.sent", stats.inits_sent},
          {"startups", stats.startups_taken},
          {"startups.sent", stats.sipis_sent},
          {"startups.ignored", stats.sipis_ignored},
          {"startup.dropped", stats.startup_dropped},
          {"ipis", stats.ipis},
          {"ipis.undeliverable", stats.undeliverable},
          {"interrupts", stats.interrupts},
          {"timer.interrupts", stats.timer_interrupts},
          {"sleeps", stats.halts},
          {"yields", stats.yields},
          {"imposed.sleeps", stats.imposed_sleeps},
          {"imposed.ns", stats.imposed_ns},
          {"sim.events", stats.events},
          {"sim.switches", stats.switches},
          {"sim.lines", stats.line_transfers},
          {"sim.lines.wait_ns", stats.line_wait_ns},
          {"sim.trampoline.waits", stats.trampoline_waits},
          {"sim.trampoline.wait_ns", stats.trampoline_wait_ns},
          {"sim.preemptions", stats.preemptions},
          {"sim.steals", stats.steals},
          {"sim.stolen_ns", stats.stolen_ns}};
}

RunEnd EndOf(const sim::End& end, const StopRequest& stop) {
  RunEnd run_end;
  run_end.cpu = end.cpu;
  run_end.code = end.code;
  run_end.text = end.text;
  switch (end.kind) {
    case sim::EndKind::kGuestExit:
      run_end.kind = EndKind::kGuestExit;
      break;
    case sim::EndKind::kViolation:
    case sim::EndKind::kFault:
      run_end.kind = EndKind::kFault;
      break;
    case sim::EndKind::kAllHalted:
      run_end.kind = EndKind::kAllHalted;
      break;
    case sim::EndKind::kTimeLimit:
      run_end.kind = EndKind::kTimeLimit;
      break;
    case sim::EndKind::kStopped:
      run_end.kind = EndKind::kSignal;
      run_end.code = static_cast<uint32_t>(stop.signal());
      break;
    case sim::EndKind::kHostError:
      run_end.kind = EndKind::kHostError;
      break;
  }
  return run_end;
}

RunRecord RecordOfSimulated(const RunConfig& config, const ArenaLayout& arena, const RunEnd& end,
                            const sim::Simulator& simulator, uint32_t tsc_khz,
                            OutputSummary serial) {
  const uint32_t cpus = config.topology.cpu_count();
  const std::byte* const base = simulator.base();
  Remains remains;
  remains.slots = {reinterpret_cast<const abi::CpuSlot*>(base + arena.slots.value), cpus};
  remains.result = reinterpret_cast<const abi::ResultPage*>(base + arena.result.value);
  if (arena.heap_bytes != 0) {
    const auto& page = *reinterpret_cast<const abi::TorturePage*>(base + arena.torture.value);
    remains.torture = TortureSoFar(
        page, [](uint64_t at) { return reinterpret_cast<const abi::TortureTally*>(at); });
  }
  const std::deque<HostLog> logs = LogsOf(simulator, cpus);
  for (size_t i = 0; i < logs.size(); ++i) {
    remains.tracks.push_back({static_cast<int32_t>(i) - 1, &logs[i]});
  }
  for (uint32_t cpu = 0; cpu < cpus; ++cpu) {
    AddRings(simulator, arena, cpu, remains.rings);
  }
  remains.clock.tsc_khz = tsc_khz;
  remains.counters = CountersOf(simulator.stats());
  remains.serial = serial;
  remains.doing = [&simulator](CpuNumber cpu) { return simulator.Doing(cpu); };
  if (config.host_cores != 0) {
    remains.notes.push_back(absl::StrCat("all CPUs share ", config.host_cores,
                                         config.host_cores == 1 ? " core" : " cores",
                                         " (--host-cores)"));
  }
  return RecordOf(config, end, remains);
}

}  // namespace

absl::StatusOr<RunRecord> RunSimulated(const RunConfig& config, StopRequest& stop) {
  RETURN_IF_ERROR(CheckSimulated(config));
  const ArenaLayout arena = PlanSimulatedArena(NeedsOf(config));
  sim::Options options = OptionsOf(config, arena);
  const uint32_t tsc_khz = options.tsc_khz;
  const std::unique_ptr<OutputStage> output = MakeOutputStage(config.serial_fd, kSerialBufferBytes);
  options.serial = [&output](const char* text, size_t bytes) {
    output->Write(std::as_bytes(std::span(text, bytes)));
  };
  options.stop = [&stop] { return stop.signal() != 0; };
  std::string error;
  const std::unique_ptr<sim::Simulator> simulator =
      sim::Simulator::Create(std::move(options), &error);
  if (simulator == nullptr) return absl::ResourceExhaustedError(error);
  if (config.empty_serial_file) RETURN_IF_ERROR(EmptyFile(config.serial_fd));
  const sim::End ended = simulator->Run();
  if (ended.kind == sim::EndKind::kHostError) return absl::ResourceExhaustedError(ended.text);
  const RunEnd end = EndOf(ended, stop);
  return RecordOfSimulated(config, arena, end, *simulator, tsc_khz, output->Finish(kDrainMs));
}

}  // namespace sipi
