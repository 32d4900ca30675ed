// Why a vCPU cannot go on, in words: what KVM said, whose vCPU it is, and where it was.
#pragma once

#include <string>

#include "apic/regs/types.h"
#include "vmm/kvm/vcpu.h"
#include "vmm/memory/guest_memory.h"

namespace sipi {

// One line for the exit that `vcpu` has just made (triple fault, failed entry, internal error,
// system event, or a reason that this program does not know), then its registers and the bytes at
// RIP. `memory` may be null. On the vCPU's thread.
std::string DescribeFatalExit(CpuNumber cpu, const Vcpu& vcpu, const GuestMemory* memory);

// "CPU n (APIC ID m): RIP ... " and the registers that tell the mode; the bytes at RIP where they
// can be read.
std::string DescribeRegisters(CpuNumber cpu, const Vcpu& vcpu, const GuestMemory* memory);

// "RIP 0x1012ab", with the segment in real mode ("CS:IP 0800:0012"), for a list of CPUs.
std::string DescribePlace(const Vcpu& vcpu);

}  // namespace sipi
