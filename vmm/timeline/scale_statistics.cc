#include "vmm/timeline/scale_statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <numeric>

namespace sipi {
namespace {

double Us(int64_t ns) { return static_cast<double>(ns) / 1000; }

}  // namespace

int64_t RankPercentile(const std::vector<int64_t>& ascending, uint32_t percent) {
  const size_t rank = ascending.size() * percent / 100;
  return ascending[std::max<size_t>(rank, 1) - 1];
}

std::optional<ScaleStatistics> ScaleStatisticsOf(std::vector<int64_t> durations_ns) {
  if (durations_ns.empty()) return std::nullopt;
  std::sort(durations_ns.begin(), durations_ns.end());
  ScaleStatistics result;
  const int64_t sum = std::accumulate(durations_ns.begin(), durations_ns.end(), int64_t{0});
  result.average_us = Us(sum) / static_cast<double>(durations_ns.size());
  result.minimum_us = Us(durations_ns.front());
  result.p50_us = Us(RankPercentile(durations_ns, 50));
  result.p90_us = Us(RankPercentile(durations_ns, 90));
  result.p99_us = Us(RankPercentile(durations_ns, 99));
  result.maximum_us = Us(durations_ns.back());
  // A duration of nothing has no logarithm; a nanosecond is the least that is told apart.
  const double scale = std::log10(std::max(result.p90_us, 0.001)) + 0.5;
  result.bucket_us = std::pow(10.0, std::trunc(scale)) / 100;
  for (const int64_t ns : durations_ns) {
    ++result.histogram[static_cast<int64_t>(Us(ns) / result.bucket_us)];
  }
  return result;
}

std::string AwkNumber(double value) {
  std::array<char, 64> text = {};
  const bool whole = value == std::trunc(value) && std::abs(value) < 1e16;
  std::snprintf(text.data(), text.size(), whole ? "%.0f" : "%.6g", value);
  return text.data();
}

}  // namespace sipi
