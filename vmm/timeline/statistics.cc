#include "vmm/timeline/statistics.h"

#include <algorithm>
#include <cmath>

namespace sipi {
namespace {

// The value a fraction of the way through `sorted`, which is not empty.
int64_t Quantile(const std::vector<int64_t>& sorted, double fraction) {
  const double position = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  const double part = position - static_cast<double>(below);
  // Interpolates the difference, so that two large neighbours lose no digits.
  const auto step = static_cast<double>(sorted[above] - sorted[below]);
  return sorted[below] + std::llround(part * step);
}

}  // namespace

std::optional<Summary> Summarize(std::vector<int64_t> samples) {
  if (samples.empty()) return std::nullopt;
  std::sort(samples.begin(), samples.end());
  return Summary{.count = samples.size(),
                 .min = samples.front(),
                 .lower_quartile = Quantile(samples, 0.25),
                 .median = Quantile(samples, 0.5),
                 .upper_quartile = Quantile(samples, 0.75),
                 .max = samples.back()};
}

}  // namespace sipi
