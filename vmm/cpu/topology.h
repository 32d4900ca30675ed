// CPU topology: sockets, dies, cores, threads, nodes, and the APIC IDs that follow from it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "apic/regs/types.h"

namespace sipi {

struct CpuPlace {
  ApicId apic_id;
  uint32_t package = 0;
  uint32_t die = 0;   // in its package
  uint32_t core = 0;  // in its die
  // In its core, by APIC ID; 0 is the primary thread. The boot CPU always is one, and the thread
  // that would be has its number then.
  uint32_t thread = 0;
  uint32_t node = 0;
  uint32_t core_index = 0;  // of its core in the machine, dense: below the number of CPUs
};

// Invariant: places.size() is the number of CPUs; CPU 0 is the boot CPU; APIC IDs are unique.
struct Topology {
  uint32_t sockets = 1;
  uint32_t dies_per_socket = 1;
  uint32_t cores_per_die = 1;
  uint32_t threads_per_core = 1;
  uint32_t nodes = 1;
  // Widths of the APIC ID fields, in bits: id = package << package_shift | die << die_shift | core
  // << core_shift | thread (SDM vol 3A, 9.9.5 "Algorithm for Three-Domain Mappings of APIC_ID").
  uint32_t core_shift = 0;  // = width of the thread field
  uint32_t die_shift = 0;
  uint32_t package_shift = 0;
  std::vector<CpuPlace> places;

  uint32_t cpu_count() const { return static_cast<uint32_t>(places.size()); }
  ApicId max_apic_id() const;
  // Number of the core (thread siblings share it) in the machine, dense.
  uint32_t CoreIndex(CpuNumber cpu) const;
};

// The topology for `--cpus=N` alone: one socket, one thread per core, ids 0..N-1.
Topology FlatTopology(uint32_t cpus);

// Parses "sockets=2,dies=1,cores=16,threads=2,nodes=2" (any subset; what is missing is 1, and if
// `cpus` is given the missing of sockets/cores is derived so that the product is `cpus`; an empty
// spec is flat). `cpus` 0 means: take the product. Threads of a core are neighbours in CPU
// numbering unless "numbering=siblings-last" (Linux/firmware order: all primaries first) is given.
// "stride=K" multiplies APIC IDs by K (sparse IDs). Fields are rounded up to powers of two, so e.g.
// cores=3,threads=2 leaves gaps in the IDs. Errors: InvalidArgument naming the field and the
// remedy.
absl::StatusOr<Topology> ParseTopology(absl::string_view spec, uint32_t cpus);

// Replaces the APIC IDs by an explicit list ("7,0,254,256,4095"; CPU 0 is the first). The IDs then
// say where each CPU is: package, die, core and thread are read off their bits and numbered
// densely, so that CPUID, tables and places agree. Errors: InvalidArgument for rubbish, count,
// duplicates.
absl::Status SetApicIds(absl::string_view list, Topology& topology);

}  // namespace sipi
