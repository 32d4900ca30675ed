// The floor: the least that any VMM must do to bring N CPUs up on KVM, with nothing of sipi in it.
//
// It creates the VM with KVM's own irqchip, and N vCPUs; sets CPUID (APIC ID and x2APIC, else an AP
// would not know who it is); starts a thread per vCPU; the boot CPU sends one INIT and one SIPI to
// all but itself; each AP adds 1 to a word in memory, in real mode, and halts; the boot CPU waits
// until all have, and ends the run by an I/O exit. The process then leaves without joining the
// halted threads. Prints one JSON line with the time of each part.
//
// Sources: KVM API (Linux Documentation/virt/kvm/api.rst) 4.7 KVM_CREATE_VCPU, 4.20
// KVM_SET_CPUID2, 4.24 KVM_CREATE_IRQCHIP, 4.35 KVM_SET_USER_MEMORY_REGION; SDM vol 3A 9.4
// (INIT/SIPI), 11.12 (x2APIC).
#include <fcntl.h>
#include <linux/kvm.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "bench/numbers.h"

namespace {

constexpr uint64_t kRamBytes = 0x10000;
constexpr uint64_t kBootGpa = 0x1000;      // the boot CPU's code, real mode
constexpr uint64_t kApGpa = 0x2000;        // the APs' code, SIPI vector 2
constexpr uint64_t kCounterGpa = 0x3000;   // how many APs have counted themselves
constexpr uint64_t kExpectedGpa = 0x3004;  // how many there are
constexpr uint16_t kDonePort = 0xf4;
constexpr uint32_t kMaxCpuidEntries = 256;

// APs: cs = 0x200, ip = 0.
constexpr uint8_t kApCode[] = {
    0x31, 0xc0,                          // xor ax, ax
    0x8e, 0xd8,                          // mov ds, ax
    0xf0, 0x66, 0xff, 0x06, 0x00, 0x30,  // lock inc dword [0x3000]
    0xfa,                                // cli
    0xf4,                                // hlt
    0xeb, 0xfd,                          // jmp to the hlt
};

// Boot CPU: cs = 0x100, ip = 0. x2APIC on (it comes up in xAPIC mode), then ICR writes by MSR
// 0x830.
constexpr uint8_t kBootCode[] = {
    0x31, 0xc0,                          // xor ax, ax
    0x8e, 0xd8,                          // mov ds, ax
    0x66, 0xb9, 0x1b, 0x00, 0x00, 0x00,  // mov ecx, IA32_APIC_BASE
    0x0f, 0x32,                          // rdmsr
    0x66, 0x0d, 0x00, 0x0c, 0x00, 0x00,  // or eax, EN | EXTD
    0x0f, 0x30,                          // wrmsr
    0x66, 0xb9, 0x30, 0x08, 0x00, 0x00,  // mov ecx, x2APIC ICR
    0x66, 0x31, 0xd2,                    // xor edx, edx
    0x66, 0xb8, 0x00, 0x45, 0x0c, 0x00,  // mov eax, INIT, assert, all but self
    0x0f, 0x30,                          // wrmsr
    0x66, 0xb8, 0x02, 0x46, 0x0c, 0x00,  // mov eax, Start Up, vector 2, all but self
    0x0f, 0x30,                          // wrmsr
    0x66, 0xa1, 0x04, 0x30,              // mov eax, [0x3004]
    0xf3, 0x90,                          // wait: pause
    0x66, 0x3b, 0x06, 0x00, 0x30,        // cmp eax, [0x3000]
    0x75, 0xf7,                          // jne wait
    0xe6, 0xf4,                          // out 0xf4, al
    0xf4,                                // hlt
};

[[noreturn]] void Die(const char* what) {
  std::fprintf(stderr, "floor: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

int Ioctl(int fd, unsigned long request, void* argument, const char* name) {
  const int result = ioctl(fd, request, argument);
  if (result < 0) Die(name);
  return result;
}

int IoctlValue(int fd, unsigned long request, unsigned long argument, const char* name) {
  const int result = ioctl(fd, request, argument);
  if (result < 0) Die(name);
  return result;
}

// struct kvm_cpuid2 as the kernel has it. In C++ the one of linux/kvm.h is 4 bytes longer (an empty
// struct before its flexible array takes a byte), so its ioctl numbers would be wrong too.
struct CpuidTable {
  uint32_t count = kMaxCpuidEntries;
  uint32_t padding = 0;
  kvm_cpuid_entry2 entries[kMaxCpuidEntries] = {};
};
using CpuidHeader = uint64_t;
constexpr unsigned long kGetSupportedCpuid = _IOWR(KVMIO, 0x05, CpuidHeader);
constexpr unsigned long kSetCpuid2 = _IOW(KVMIO, 0x90, CpuidHeader);

// Asked of KVM once; per vCPU only the APIC ID changes.
void SetApicId(CpuidTable& table, uint32_t id) {
  for (uint32_t i = 0; i < table.count; ++i) {
    kvm_cpuid_entry2& entry = table.entries[i];
    if (entry.function == 1) {
      entry.ebx = (entry.ebx & 0x00ffffffu) | (id << 24);
      entry.ecx |= 1u << 21;  // x2APIC
    }
    if (entry.function == 0xb || entry.function == 0x1f) entry.edx = id;
  }
}

struct Machine {
  int kvm = -1;
  int vm = -1;
  uint8_t* ram = nullptr;
  size_t run_bytes = 0;
  CpuidTable cpuid;
  std::vector<int> vcpus;
  std::vector<kvm_run*> runs;
};

void CreateVm(Machine& m) {
  m.kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
  if (m.kvm < 0) Die("/dev/kvm");
  m.vm = IoctlValue(m.kvm, KVM_CREATE_VM, 0, "KVM_CREATE_VM");
  // Only Intel without unrestricted guest uses it; others accept it.
  IoctlValue(m.vm, KVM_SET_TSS_ADDR, 0xfffbd000, "KVM_SET_TSS_ADDR");
  IoctlValue(m.vm, KVM_CREATE_IRQCHIP, 0, "KVM_CREATE_IRQCHIP");
  kvm_enable_cap cap = {};
  cap.cap = KVM_CAP_X2APIC_API;
  cap.args[0] = KVM_X2APIC_API_USE_32BIT_IDS | KVM_X2APIC_API_DISABLE_BROADCAST_QUIRK;
  Ioctl(m.vm, KVM_ENABLE_CAP, &cap, "KVM_ENABLE_CAP(X2APIC_API)");
  void* ram = mmap(nullptr, kRamBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (ram == MAP_FAILED) Die("mmap of guest memory");
  m.ram = static_cast<uint8_t*>(ram);
  std::memcpy(m.ram + kBootGpa, kBootCode, sizeof(kBootCode));
  std::memcpy(m.ram + kApGpa, kApCode, sizeof(kApCode));
  kvm_userspace_memory_region region = {};
  region.memory_size = kRamBytes;
  region.userspace_addr = reinterpret_cast<uint64_t>(m.ram);
  Ioctl(m.vm, KVM_SET_USER_MEMORY_REGION, &region, "KVM_SET_USER_MEMORY_REGION");
  m.run_bytes =
      static_cast<size_t>(IoctlValue(m.kvm, KVM_GET_VCPU_MMAP_SIZE, 0, "KVM_GET_VCPU_MMAP_SIZE"));
  Ioctl(m.kvm, kGetSupportedCpuid, &m.cpuid, "KVM_GET_SUPPORTED_CPUID");
}

void CreateVcpus(Machine& m, uint32_t cpus) {
  const uint32_t expected = cpus - 1;
  std::memcpy(m.ram + kExpectedGpa, &expected, sizeof(expected));
  for (uint32_t id = 0; id < cpus; ++id) {
    const int fd = IoctlValue(m.vm, KVM_CREATE_VCPU, id, "KVM_CREATE_VCPU");
    void* run = mmap(nullptr, m.run_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (run == MAP_FAILED) Die("mmap of kvm_run");
    SetApicId(m.cpuid, id);
    Ioctl(fd, kSetCpuid2, &m.cpuid, "KVM_SET_CPUID2");
    m.vcpus.push_back(fd);
    m.runs.push_back(static_cast<kvm_run*>(run));
  }
}

void SetBootRegisters(const Machine& m) {
  kvm_sregs sregs = {};
  Ioctl(m.vcpus[0], KVM_GET_SREGS, &sregs, "KVM_GET_SREGS");
  sregs.cs.selector = kBootGpa >> 4;
  sregs.cs.base = kBootGpa;
  Ioctl(m.vcpus[0], KVM_SET_SREGS, &sregs, "KVM_SET_SREGS");
  kvm_regs regs = {};
  regs.rflags = 2;
  Ioctl(m.vcpus[0], KVM_SET_REGS, &regs, "KVM_SET_REGS");
}

// Runs one vCPU until it does I/O to the done port. An AP's KVM_RUN blocks: first for INIT and
// SIPI, then in HLT.
void RunVcpu(int fd, const kvm_run* run) {
  while (true) {
    if (ioctl(fd, KVM_RUN, 0) != 0) {
      if (errno == EINTR || errno == EAGAIN) continue;
      Die("KVM_RUN");
    }
    if (run->exit_reason == KVM_EXIT_IO && run->io.port == kDonePort) return;
    std::fprintf(stderr, "floor: unexpected exit %u\n", run->exit_reason);
    std::exit(1);
  }
}

void StartApThreads(const Machine& m) {
  for (size_t i = 1; i < m.vcpus.size(); ++i) {
    std::thread(RunVcpu, m.vcpus[i], m.runs[i]).detach();
  }
}

void RaiseOpenFiles(uint32_t cpus) {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= cpus + 64) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

double MsSince(std::chrono::steady_clock::time_point& since) {
  const auto now = std::chrono::steady_clock::now();
  const double ms = std::chrono::duration<double, std::milli>(now - since).count();
  since = now;
  return ms;
}

}  // namespace

int main(int argc, char** argv) {
  const auto count = static_cast<uint32_t>(sipi::bench::NumbersOf(
      argc, argv, "floor [CPUS]: the least that any VMM must do.", {{"CPUS", 64, 1, 4096}})[0]);
  auto mark = std::chrono::steady_clock::now();
  RaiseOpenFiles(count);
  Machine machine;
  CreateVm(machine);
  CreateVcpus(machine, count);
  SetBootRegisters(machine);
  const double create_ms = MsSince(mark);
  StartApThreads(machine);
  const double threads_ms = MsSince(mark);
  RunVcpu(machine.vcpus[0], machine.runs[0]);
  const double bringup_ms = MsSince(mark);
  uint32_t counted = 0;
  std::memcpy(&counted, machine.ram + kCounterGpa, sizeof(counted));
  std::printf(
      "{\"cpus\": %u, \"counted\": %u, \"create_ms\": %.3f, \"threads_ms\": %.3f, \"bringup_ms\": "
      "%.3f}\n",
      count, counted, create_ms, threads_ms, bringup_ms);
  std::fflush(stdout);
  // The APs' threads are inside KVM_RUN for good; the kernel takes them down.
  _exit(counted == count - 1 ? 0 : 1);
}
