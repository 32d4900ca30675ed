// The paragraphs of `sipi doctor`. Text only; each ends in a newline.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "vmm/kvm/kvm.h"

namespace sipi {

// Kernel, CPU, cores, module.
std::string DoctorHostSection();

// What is wrong with `device`, from the status of Kvm::Open, and what to do about it, step by step.
std::string DoctorKvmFailure(const absl::Status& status, const std::string& device);

// What this KVM can do: API, limits, which irqchips work, what is lost without each capability that
// is missing, and whether the process's limits let the largest machine run.
std::string DoctorKvmSection(const Kvm& kvm, const std::string& device);

}  // namespace sipi
