// Where a case's CPUs are, which APIC IDs they have, and in which order they are brought up.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "guest/abi/boot_params.h"
#include "vmm/cpu/topology.h"
#include "vmm/explore/draws.h"

namespace sipi {

// Siblings in half of the cases with an even number of CPUs, two packages in one of four. APIC IDs
// are the CPU numbers in half of them; else CPUs are numbered in another order than their IDs, with
// gaps, with x2APIC also above 255.
Topology DrawTopology(Draws& draws, uint32_t cpus, abi::ApicMode mode);

// Every CPU but the boot CPU: ascending in half of the cases.
std::vector<uint32_t> DrawOrder(Draws& draws, uint32_t cpus);

// Without its last CPU: what is left stays where it is and keeps its ID. A sibling that is alone
// then is its core's primary.
void DropLastCpu(Topology& topology);

// One package, and the CPU numbers for APIC IDs. Siblings stay.
void UsePlainPlaces(Topology& topology);

// ", siblings, 2 packages, APIC IDs 5,0,3", of what is not plain; ", order 3,1,2".
std::string DescribeTopology(const Topology& topology);
std::string DescribeOrder(const std::vector<uint32_t>& order);

}  // namespace sipi
