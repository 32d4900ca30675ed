#include "vmm/machine/halt_monitor.h"

#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <utility>

namespace sipi {
namespace {

// What a machine may use in one interval and still count as quiet: this thread's own looks.
constexpr int64_t kQuietUs = 2'000;
// How long the CPUs have to answer. One that does not is in a sleep with an end, or in user space.
constexpr int kAnswerMs = 200;
constexpr uint32_t kMaxBackoff = 8;

int64_t ProcessCpuTimeUs() {
  rusage usage;
  if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  const auto us = [](const timeval& t) { return int64_t{t.tv_sec} * 1'000'000 + t.tv_usec; };
  return us(usage.ru_utime) + us(usage.ru_stime);
}

}  // namespace

HaltMonitor::HaltMonitor(std::vector<KernelVcpu*> vcpus)
    : vcpus_(std::move(vcpus)), cpu_time_us_(ProcessCpuTimeUs()) {}

bool HaltMonitor::Quiet() {
  const int64_t now_us = ProcessCpuTimeUs();
  return now_us - std::exchange(cpu_time_us_, now_us) < kQuietUs;
}

bool HaltMonitor::Tick() {
  if (!Quiet()) {
    places_.reset();
    skip_ = 0;
    backoff_ = 1;
    return false;
  }
  if (skip_ > 0) {
    --skip_;
    return false;
  }
  std::optional<std::vector<uint64_t>> places = Inspect();
  cpu_time_us_ = ProcessCpuTimeUs();  // the inspection's own time does not count
  if (!places) {
    places_.reset();
    skip_ = backoff_;
    backoff_ = std::min(backoff_ * 2, kMaxBackoff);
    return false;
  }
  const bool same = places_ == places;
  places_ = std::move(places);
  return same;
}

std::optional<std::vector<uint64_t>> HaltMonitor::Inspect() {
  ++round_;
  for (KernelVcpu* vcpu : vcpus_) vcpu->AskInspection(round_);
  std::vector<uint64_t> places;
  int left_ms = kAnswerMs;
  for (KernelVcpu* vcpu : vcpus_) {
    const VcpuInspection* answer = vcpu->InspectionOf(round_);
    for (; answer == nullptr && left_ms > 0; --left_ms) {
      poll(nullptr, 0, 1);
      answer = vcpu->InspectionOf(round_);
    }
    if (answer == nullptr || !answer->Blocked()) return std::nullopt;
    places.push_back(answer->rip);
  }
  return places;
}

}  // namespace sipi
