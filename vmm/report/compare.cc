#include "vmm/report/compare.h"

#include <algorithm>
#include <cstddef>

namespace sipi {
namespace {

bool IsComplete(const Sample& sample, uint32_t cpus_offered) {
  return sample.outcome == Outcome::kComplete && sample.cpus_online == cpus_offered &&
         sample.smpboot_ns.has_value();
}

// Medians over those samples that `wanted` takes.
template <class Wanted>
void FillFigures(CompareRow& row, Wanted wanted) {
  std::vector<int64_t> smpboot;
  std::array<std::vector<int64_t>, kPhaseCount> phases;
  for (const Sample& sample : row.samples) {
    if (!wanted(sample)) continue;
    smpboot.push_back(*sample.smpboot_ns);
    for (size_t i = 0; i < kPhaseCount; ++i) phases[i].push_back(sample.phases_ns[i]);
  }
  row.smpboot_ns = Summarize(std::move(smpboot));
  for (size_t i = 0; i < kPhaseCount; ++i) {
    if (const auto summary = Summarize(std::move(phases[i]))) row.phases_ns[i] = summary->median;
  }
}

bool HasCompleteRun(const CompareRow& row) { return row.partial_runs < row.runs; }

void FillRatios(const std::string& baseline, std::vector<CompareRow>& rows) {
  const auto base = std::find_if(rows.begin(), rows.end(), [&baseline](const CompareRow& row) {
    return row.strategy == baseline;
  });
  if (base == rows.end() || !HasCompleteRun(*base)) return;
  const auto base_median = static_cast<double>(base->smpboot_ns->median);
  for (CompareRow& row : rows) {
    if (!HasCompleteRun(row) || row.smpboot_ns->median <= 0) continue;
    row.ratio = base_median / static_cast<double>(row.smpboot_ns->median);
  }
}

}  // namespace

void Comparison::Add(const RunRecord& record) {
  if (groups_.empty()) {
    common_.machine = record.machine;
    common_.host = record.host;
    common_.irqchip = record.irqchip;
    common_.apic = record.apic;
    common_.profile = record.profile;
    common_.driver = record.driver;
    common_.seed = record.seed;
    common_.cpus_offered = record.cpus_wanted;
  }
  auto group = std::find_if(groups_.begin(), groups_.end(),
                            [&record](const Group& g) { return g.strategy == record.strategy; });
  if (group == groups_.end()) {
    groups_.push_back({.strategy = record.strategy, .cpus_offered = record.cpus_wanted});
    group = groups_.end() - 1;
  }
  const Analysis analysis = Analyze(record);
  Sample sample = {.smpboot_ns = analysis.smpboot_ns,
                   .cpus_online = record.cpus_online,
                   .lost_events = record.lost_events,
                   .seed = record.seed,
                   .outcome = record.outcome,
                   .vetoed = WasVetoed(record)};
  for (const Phase phase : kPhases) {
    sample.phases_ns[static_cast<size_t>(phase)] = analysis.phase(phase).wall_ns;
  }
  group->samples.push_back(sample);
}

std::vector<CompareRow> Comparison::Rows() const {
  std::vector<CompareRow> rows;
  for (const Group& group : groups_) {
    CompareRow row = {.strategy = group.strategy,
                      .runs = static_cast<uint32_t>(group.samples.size()),
                      .cpus_offered = group.cpus_offered,
                      .cpus_online = group.cpus_offered,
                      .samples = group.samples};
    for (const Sample& sample : row.samples) {
      row.cpus_online = std::min(row.cpus_online, sample.cpus_online);
      if (!IsComplete(sample, row.cpus_offered)) ++row.partial_runs;
      if (sample.vetoed) ++row.vetoed_runs;
    }
    FillFigures(row, [&row](const Sample& sample) {
      return HasCompleteRun(row) ? IsComplete(sample, row.cpus_offered)
                                 : sample.smpboot_ns.has_value();
    });
    rows.push_back(std::move(row));
  }
  FillRatios(baseline_, rows);
  return rows;
}

}  // namespace sipi
