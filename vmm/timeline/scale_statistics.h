// The figures of rcuscale's and refscale's evaluation scripts, by their rules.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sipi {

// The sample at index int(n * percent / 100), counted from 1 and at least 1: no interpolation.
// Precondition: `ascending` is sorted and not empty.
int64_t RankPercentile(const std::vector<int64_t>& ascending, uint32_t percent);

struct ScaleStatistics {
  double average_us = 0;
  double minimum_us = 0;
  double p50_us = 0;
  double p90_us = 0;
  double p99_us = 0;
  double maximum_us = 0;
  // 10^int(log10(90th percentile) + 0.5) / 100 microseconds.
  double bucket_us = 0;
  std::map<int64_t, uint64_t> histogram;  // by bucket: how many begin at bucket * bucket_us
};

// Nothing if there are no samples.
std::optional<ScaleStatistics> ScaleStatisticsOf(std::vector<int64_t> durations_ns);

// A number as awk prints it: whole ones as they are, others with six significant digits.
std::string AwkNumber(double value);

}  // namespace sipi
