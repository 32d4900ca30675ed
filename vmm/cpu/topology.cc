#include "vmm/cpu/topology.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "vmm/base/quoted.h"
#include "vmm/base/status_macros.h"

namespace sipi {
namespace {

constexpr uint32_t kMaxCpus = 1u << 16;        // abi::CpuEntry's fields have 16 bits
constexpr uint32_t kBroadcastId = 0xffffffff;  // x2APIC's "all", SDM vol 3A, 11.12.9
constexpr char kGrammar[] =
    "write e.g. sockets=2,dies=1,cores=16,threads=2,nodes=2,numbering=siblings-last,stride=2";

// Bits needed for the values 0 .. count-1.
uint32_t FieldWidth(uint32_t count) { return static_cast<uint32_t>(std::bit_width(count - 1)); }

// What the user wrote; 0 where the field is missing.
struct Spec {
  uint32_t sockets = 0;
  uint32_t dies = 0;
  uint32_t cores = 0;
  uint32_t threads = 0;
  uint32_t nodes = 0;
  uint32_t stride = 0;
  bool siblings_last = false;
};

absl::Status Bad(absl::string_view what, absl::string_view remedy) {
  return absl::InvalidArgumentError(absl::StrCat(what, "; ", remedy));
}

uint32_t* NumberField(absl::string_view key, Spec& spec) {
  if (key == "sockets") return &spec.sockets;
  if (key == "dies") return &spec.dies;
  if (key == "cores") return &spec.cores;
  if (key == "threads") return &spec.threads;
  if (key == "nodes") return &spec.nodes;
  if (key == "stride") return &spec.stride;
  return nullptr;
}

absl::Status ParseField(absl::string_view field, Spec& spec) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(field, absl::MaxSplits('=', 1));
  const auto [key, value] = parts;
  if (key == "numbering") {
    if (value != "siblings-last" && value != "neighbours") {
      return Bad(absl::StrCat(Quoted(field), " is unknown"),
                 "use numbering=neighbours or numbering=siblings-last");
    }
    spec.siblings_last = value == "siblings-last";
    return absl::OkStatus();
  }
  uint32_t* number = NumberField(key, spec);
  if (number == nullptr) return Bad(absl::StrCat(Quoted(field), " is not a field"), kGrammar);
  if (*number != 0) return Bad(absl::StrCat(key, " stands twice"), "give it once");
  if (!absl::SimpleAtoi(value, number) || *number == 0 || *number > kMaxCpus) {
    return Bad(absl::StrCat(Quoted(field), " is not a number from 1 to ", kMaxCpus), kGrammar);
  }
  return absl::OkStatus();
}

absl::StatusOr<Spec> ParseSpec(absl::string_view text) {
  Spec spec;
  if (absl::StripAsciiWhitespace(text).empty()) return spec;
  for (const absl::string_view field : absl::StrSplit(text, ',')) {
    RETURN_IF_ERROR(ParseField(absl::StripAsciiWhitespace(field), spec));
  }
  return spec;
}

// The number of CPUs that `spec` has, a missing field counting as 1. Each field has 17 bits at
// most, so more than 2^34 are not multiplied on: it is too many anyway, and stays so.
uint64_t Product(const Spec& spec) {
  uint64_t product = 1;
  for (const uint32_t field : {spec.sockets, spec.dies, spec.cores, spec.threads}) {
    if (product <= uint64_t{1} << 34) product *= std::max(field, 1u);
  }
  return product;
}

// Sets `field`, which is missing, so that the product is `cpus`, or to 1 if that is 0.
absl::Status Derive(uint32_t cpus, const Spec& spec, uint32_t& field) {
  const uint64_t known = Product(spec);
  if (cpus != 0 && cpus % known != 0) {
    return Bad(
        absl::StrCat("the fields given are ", known, " CPUs, which does not divide --cpus=", cpus),
        "change the topology or --cpus");
  }
  field = cpus != 0 ? static_cast<uint32_t>(cpus / known) : 1;
  return absl::OkStatus();
}

// Fills in what is missing, so that the product is `cpus` where that is not 0.
absl::Status Complete(uint32_t cpus, Spec& spec) {
  for (uint32_t* field : {&spec.dies, &spec.threads, &spec.nodes, &spec.stride}) {
    if (*field == 0) *field = 1;
  }
  if (spec.cores == 0) {
    if (spec.sockets == 0) spec.sockets = 1;
    RETURN_IF_ERROR(Derive(cpus, spec, spec.cores));
  } else if (spec.sockets == 0) {
    RETURN_IF_ERROR(Derive(cpus, spec, spec.sockets));
  }
  const uint64_t product = Product(spec);
  if (product > kMaxCpus) {
    return Bad("it has too many CPUs", absl::StrCat("at most ", kMaxCpus, " are possible"));
  }
  if (cpus != 0 && product != cpus) {
    return Bad(
        absl::StrCat("sockets=", spec.sockets, ",dies=", spec.dies, ",cores=", spec.cores,
                     ",threads=", spec.threads, " are ", product, " CPUs, but --cpus=", cpus),
        absl::StrCat("use --cpus=", product, " or change the topology"));
  }
  return absl::OkStatus();
}

// Numbers the CPUs core by core; threads of a core are neighbours.
std::vector<CpuPlace> NeighbourPlaces(const Topology& topology) {
  std::vector<CpuPlace> places;
  const uint32_t cores = topology.sockets * topology.dies_per_socket * topology.cores_per_die;
  places.reserve(size_t{cores} * topology.threads_per_core);
  for (uint32_t core = 0; core < cores; ++core) {
    const uint32_t die = core / topology.cores_per_die;  // in the machine
    CpuPlace place;
    place.package = die / topology.dies_per_socket;
    place.die = die % topology.dies_per_socket;
    place.core = core % topology.cores_per_die;
    place.core_index = core;
    place.node = static_cast<uint32_t>(uint64_t{core} * topology.nodes / cores);
    for (place.thread = 0; place.thread < topology.threads_per_core; ++place.thread) {
      places.push_back(place);
    }
  }
  return places;
}

// Sets field widths and APIC IDs. A stride that is a power of two widens the lowest field; another
// stride is only for topologies with one field, which it then widens.
absl::Status AssignIds(uint32_t stride, Topology& topology) {
  const bool flat =
      topology.sockets == 1 && topology.dies_per_socket == 1 && topology.threads_per_core == 1;
  const bool power_of_two = std::has_single_bit(stride);
  if (!power_of_two && !flat) {
    return Bad(absl::StrCat("stride=", stride, " is not a power of two"),
               "with sockets, dies or threads the stride must be one, or it would mix the fields");
  }
  const uint32_t stride_shift = power_of_two ? static_cast<uint32_t>(std::countr_zero(stride)) : 0;
  const uint32_t factor = power_of_two ? 1 : stride;  // what the shift does not do
  const uint64_t last_core = uint64_t{topology.cores_per_die - 1} * factor;
  topology.core_shift = FieldWidth(topology.threads_per_core) + stride_shift;
  topology.die_shift = topology.core_shift + static_cast<uint32_t>(std::bit_width(last_core));
  topology.package_shift = topology.die_shift + FieldWidth(topology.dies_per_socket);
  const uint32_t width = topology.package_shift + FieldWidth(topology.sockets);
  if (width > 31) {
    return Bad(absl::StrCat("APIC IDs would need ", width, " bits"),
               "use a smaller stride or fewer CPUs");
  }
  for (CpuPlace& place : topology.places) {
    place.apic_id =
        ApicId(place.package << topology.package_shift | place.die << topology.die_shift |
               place.core * factor << topology.core_shift | place.thread << stride_shift);
  }
  return absl::OkStatus();
}

// The place of the CPU with `id`, whose predecessor in the order of IDs is at `before` with
// `before_id`: the next thread, core, die or package, as the highest field that differs says.
CpuPlace NextPlace(const Topology& topology, const CpuPlace& before, uint64_t before_id,
                   uint64_t id) {
  const auto differs = [&](uint32_t shift) { return id >> shift != before_id >> shift; };
  CpuPlace place = before;
  if (!differs(topology.core_shift)) {
    place.thread += 1;
    return place;
  }
  place.thread = 0;
  place.core_index += 1;
  if (differs(topology.package_shift)) {
    place.package += 1;
    place.die = place.core = 0;
  } else if (differs(topology.die_shift)) {
    place.die += 1;
    place.core = 0;
  } else {
    place.core += 1;
  }
  return place;
}

// The boot CPU can never go off, so it is its core's primary thread, whatever its ID: it changes
// numbers with the first.
void MakeBootCpuPrimary(std::vector<CpuPlace>& places) {
  const CpuPlace boot = places.front();
  if (boot.thread == 0) return;
  for (CpuPlace& place : places) {
    if (place.core_index == boot.core_index && place.thread == 0) place.thread = boot.thread;
  }
  places.front().thread = 0;
}

// The places that follow from explicit APIC IDs: each level numbered densely, in the order of IDs.
void PlacesFromIds(Topology& topology) {
  std::vector<CpuPlace*> by_id;
  for (CpuPlace& place : topology.places) by_id.push_back(&place);
  std::sort(by_id.begin(), by_id.end(),
            [](const CpuPlace* a, const CpuPlace* b) { return a->apic_id < b->apic_id; });
  topology.sockets = topology.dies_per_socket = topology.cores_per_die = 1;
  topology.threads_per_core = 1;
  CpuPlace now;
  uint64_t now_id = by_id.front()->apic_id.value;
  for (CpuPlace* place : by_id) {
    if (place != by_id.front()) now = NextPlace(topology, now, now_id, place->apic_id.value);
    now_id = place->apic_id.value;
    now.apic_id = place->apic_id;
    now.node = place->node;
    *place = now;
    topology.sockets = std::max(topology.sockets, now.package + 1);
    topology.dies_per_socket = std::max(topology.dies_per_socket, now.die + 1);
    topology.cores_per_die = std::max(topology.cores_per_die, now.core + 1);
    topology.threads_per_core = std::max(topology.threads_per_core, now.thread + 1);
  }
}

}  // namespace

ApicId Topology::max_apic_id() const {
  ApicId max;
  for (const CpuPlace& place : places) max = std::max(max, place.apic_id);
  return max;
}

uint32_t Topology::CoreIndex(CpuNumber cpu) const { return places[cpu.value].core_index; }

Topology FlatTopology(uint32_t cpus) {
  Topology topology;
  topology.cores_per_die = cpus;
  topology.die_shift = topology.package_shift = FieldWidth(cpus);
  topology.places.resize(cpus);
  for (uint32_t cpu = 0; cpu < cpus; ++cpu) {
    topology.places[cpu] = {.apic_id = ApicId(cpu), .core = cpu, .core_index = cpu};
  }
  return topology;
}

absl::StatusOr<Topology> ParseTopology(absl::string_view text, uint32_t cpus) {
  ASSIGN_OR_RETURN(Spec spec, ParseSpec(text));
  RETURN_IF_ERROR(Complete(cpus, spec));
  Topology topology;
  topology.sockets = spec.sockets;
  topology.dies_per_socket = spec.dies;
  topology.cores_per_die = spec.cores;
  topology.threads_per_core = spec.threads;
  topology.nodes = spec.nodes;
  const uint32_t cores = spec.sockets * spec.dies * spec.cores;
  if (cores % spec.nodes != 0) {
    return Bad(absl::StrCat("nodes=", spec.nodes, " does not divide the ", cores, " cores"),
               "each node has the same number of cores");
  }
  topology.places = NeighbourPlaces(topology);
  if (spec.siblings_last) {
    std::stable_sort(topology.places.begin(), topology.places.end(),
                     [](const CpuPlace& a, const CpuPlace& b) { return a.thread < b.thread; });
  }
  RETURN_IF_ERROR(AssignIds(spec.stride, topology));
  return topology;
}

absl::Status SetApicIds(absl::string_view list, Topology& topology) {
  std::vector<ApicId> ids;
  for (const absl::string_view word : absl::StrSplit(list, ',')) {
    uint32_t id = 0;
    if (!absl::SimpleAtoi(word, &id) || id == kBroadcastId) {
      return absl::InvalidArgumentError(
          absl::StrCat(Quoted(word), " is not an ID; write decimal numbers from 0 to ",
                       kBroadcastId - 1, ", e.g. 7,0,254,256"));
    }
    ids.emplace_back(id);
  }
  if (ids.size() != topology.places.size()) {
    return absl::InvalidArgumentError(absl::StrCat(ids.size(), " in the list for ",
                                                   topology.places.size(),
                                                   " CPUs; give one for each CPU, CPU 0 first"));
  }
  std::vector<ApicId> sorted = ids;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat(twice->value, " stands twice; each CPU needs its own"));
  }
  for (size_t cpu = 0; cpu < ids.size(); ++cpu) topology.places[cpu].apic_id = ids[cpu];
  if (topology.sockets == 1 && topology.dies_per_socket == 1) {
    // One package stays one package, however high its IDs are.
    topology.package_shift = std::max(topology.package_shift,
                                      static_cast<uint32_t>(std::bit_width(sorted.back().value)));
    topology.die_shift = topology.package_shift;
  }
  PlacesFromIds(topology);
  MakeBootCpuPrimary(topology.places);
  return absl::OkStatus();
}

}  // namespace sipi
