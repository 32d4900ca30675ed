#include "vmm/cli/suggest.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace sipi {
namespace {

// Levenshtein distance, one row at a time.
size_t EditDistance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

bool StartsWith(const std::string& text, const std::string& prefix) {
  return text.compare(0, prefix.size(), prefix) == 0;
}

// Names and flags are short; what is longer is no slip, and the distance of a huge argument would
// cost seconds.
constexpr size_t kLongestSlip = 64;

}  // namespace

std::string NearestName(const std::string& given, const std::vector<std::string>& names) {
  if (given.size() < 2 || given.size() > kLongestSlip) return "";
  std::string best;
  size_t best_distance = 0;
  for (const std::string& name : names) {
    const bool prefix = StartsWith(name, given) || StartsWith(given, name);
    const size_t distance = prefix ? 1 : EditDistance(given, name);
    const size_t allowed = std::max<size_t>(1, std::max(given.size(), name.size()) / 3);
    if (distance > allowed || (!best.empty() && distance >= best_distance)) continue;
    best = name;
    best_distance = distance;
  }
  return best;
}

std::string DidYouMean(const std::string& given, const std::vector<std::string>& names) {
  const std::string nearest = NearestName(given, names);
  return nearest.empty() ? "" : "; did you mean '" + nearest + "'?";
}

}  // namespace sipi
