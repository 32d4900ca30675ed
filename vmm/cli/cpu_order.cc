#include "vmm/cli/cpu_order.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "vmm/base/status_macros.h"
#include "vmm/base/text_file.h"
#include "vmm/cli/flag_values.h"

namespace sipi {
namespace {

constexpr char kFlag[] = "--order";
constexpr char kFilePrefix[] = "file:";

// SplitMix64 (Steele, Lea, Flood 2014). Fixed here, so that a seed means the same order with every
// standard library.
class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15u;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

 private:
  uint64_t state_;
};

void Shuffle(std::vector<uint32_t>& order, uint64_t seed) {
  SplitMix64 random(seed);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.Next() % i]);
}

// Reads one line's numbers into `order`; `seen` is indexed by CPU.
absl::Status TakeLine(const std::string& where, std::string line, std::vector<bool>& seen,
                      std::vector<uint32_t>& order) {
  line.resize(std::min(line.size(), line.find('#')));
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == ',' || c == '\t' || c == '\r'; }, ' ');
  for (const std::string& word : SplitAt(line, ' ')) {
    if (word.empty()) continue;
    ASSIGN_OR_RETURN(const uint64_t cpu, ParseNumber(where, word, 1, seen.size() - 1));
    if (seen[cpu]) return FlagError(where, absl::StrCat("CPU ", cpu, " is named twice"));
    seen[cpu] = true;
    order.push_back(static_cast<uint32_t>(cpu));
  }
  return absl::OkStatus();
}

constexpr uint64_t kMaxOrderFileBytes = uint64_t{1} << 20;

absl::StatusOr<std::vector<uint32_t>> ReadOrderFile(const std::string& path, uint32_t cpus) {
  const absl::StatusOr<std::string> text = ReadTextFile(path, kMaxOrderFileBytes);
  if (!text.ok()) {
    return FlagError(
        kFlag, absl::StrCat(text.status().message(), "; give the path of a list of CPU numbers"));
  }
  std::istringstream file(*text);
  std::vector<bool> seen(cpus, false);
  std::vector<uint32_t> order;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    RETURN_IF_ERROR(TakeLine(absl::StrCat(kFlag, ": ", path, ":", number), line, seen, order));
  }
  if (order.size() + 1 != cpus) {
    const auto missing = std::find(seen.begin() + 1, seen.end(), false) - seen.begin();
    return FlagError(
        kFlag, absl::StrCat(path, " names ", order.size(), " of the ", cpus - 1,
                            " CPUs to bring up, CPU ", missing, " is missing; name each once"));
  }
  return order;
}

}  // namespace

absl::StatusOr<std::vector<uint32_t>> MakeCpuOrder(const std::string& spec,
                                                   const Topology& topology, uint64_t seed) {
  if (spec.rfind(kFilePrefix, 0) == 0) {
    return ReadOrderFile(spec.substr(sizeof(kFilePrefix) - 1), topology.cpu_count());
  }
  std::vector<uint32_t> order(topology.cpu_count() - 1);
  std::iota(order.begin(), order.end(), uint32_t{1});
  const auto sort_by = [&](uint32_t CpuPlace::*key) {
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return topology.places[a].*key < topology.places[b].*key;
    });
  };
  if (spec == "reverse") {
    std::reverse(order.begin(), order.end());
  } else if (spec == "node") {
    sort_by(&CpuPlace::node);
  } else if (spec == "siblings-last") {
    sort_by(&CpuPlace::thread);
  } else if (spec == "random") {
    Shuffle(order, seed);
  } else if (spec != "id") {
    return UnknownName(kFlag, spec,
                       {"id", "reverse", "node", "siblings-last", "random", "file:PATH"});
  }
  return order;
}

absl::Status CheckBootCpuIsPrimary(const Topology& topology) {
  if (topology.places[0].thread == 0) return absl::OkStatus();
  return FlagError("--apic-ids",
                   "CPU 0 is not the first thread of its core, and cannot go off; "
                   "give it an ID that is");
}

}  // namespace sipi
