// Order statistics of a few samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace sipi {

// Quartiles by linear interpolation between the neighbouring samples (Hyndman and Fan's type 7,
// what R and NumPy do by default), rounded to the nearest integer, halves away from zero. Same unit
// as the samples.
struct Summary {
  size_t count = 0;
  int64_t min = 0;
  int64_t lower_quartile = 0;
  int64_t median = 0;
  int64_t upper_quartile = 0;
  int64_t max = 0;
};

// Nothing if there are no samples.
std::optional<Summary> Summarize(std::vector<int64_t> samples);

}  // namespace sipi
