// The machine made of threads of the host: runs guest/kernel from KernelMain to the exit port, so
// that its algorithms can be put under ThreadSanitizer and measured beside their peers. One machine
// at a time in a process that links this platform; it excludes the simulator's library.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "guest/kernel/kernel.h"

namespace sipi::threads {

struct Options {
  uint32_t cpus = 1;
  // abi::BootParams blob, as for the simulator: addresses count from 0 and are moved into the
  // machine's memory. APIC IDs are CPU numbers, x2APIC; tsc_khz from HostTscKhz().
  std::vector<std::byte> boot_params;
  uint64_t memory_bytes = 0;
  // What the thread "init" does once all CPUs are up; null: the parameters' scenario.
  void (*body)(Kernel& kernel) = nullptr;
};

struct End {
  uint32_t code = 0;  // as written to the exit port
  std::string panic;  // "file:line: text", empty without one
};

// The host's TSC against its clock, measured once per call, takes some milliseconds.
uint32_t HostTscKhz();

struct Cpu;

class Machine {
 public:
  // Null, with `error` naming the reason, if the host has no memory for it.
  static std::unique_ptr<Machine> Create(Options options, std::string* error);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // From power-on to the end. Starts the host's threads and joins them. Once.
  End Run();

  std::byte* base() const { return memory_; }
  Kernel& kernel() const { return *reinterpret_cast<Kernel*>(memory_ + abi::kImageGpa); }

  // --- For the seam, on any CPU.
  uint32_t size() const { return options_.cpus; }
  Cpu& cpu(uint32_t number) { return *cpus_[number]; }
  bool ended() const { return ended_.load(std::memory_order_relaxed); }
  // The machine ends with this code; CPUs see it at their next poll.
  void Finish(uint32_t code);
  // A stack for good; null: no memory.
  std::byte* NewStack();

 private:
  explicit Machine(Options options);
  bool Reserve(std::string* error);
  void MakeKernel();
  void RunCpu(Cpu& cpu);

  Options options_;
  std::byte* memory_ = nullptr;
  std::vector<std::unique_ptr<Cpu>> cpus_;
  std::vector<std::byte*> stacks_;
  std::atomic_flag stacks_lock_;
  std::atomic<bool> ended_{false};
  std::atomic<uint32_t> code_{0};
};

}  // namespace sipi::threads
