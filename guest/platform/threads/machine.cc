#include "guest/platform/threads/machine.h"

#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <thread>
#include <utility>

#include "guest/kernel/boot_params.h"
#include "guest/platform/threads/cpu.h"

namespace sipi::threads {
namespace {

std::byte* MapZeroed(uint64_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
}

// Where AddressSanitizer finds the host thread's own stack.
void NoteHostStack(platform::Context& host) {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
  void* stack = nullptr;
  size_t bytes = 0;
  if (pthread_attr_getstack(&attributes, &stack, &bytes) == 0) {
    host.stack = stack;
    host.stack_bytes = bytes;
  }
  pthread_attr_destroy(&attributes);
}

// A CPU's first function, on its boot stack.
void Start(void* argument) {
  const Cpu& cpu = *static_cast<Cpu*>(argument);
  Kernel& kernel = cpu.machine->kernel();
  const uint64_t now = platform::NowTicks();
  if (cpu.number == 0) KernelMain(kernel, now);
  ApMain(kernel, kernel.percpu(CpuNumber(cpu.number)), now);
}

uint64_t ClockNs() {
  timespec time = {};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

}  // namespace

uint32_t HostTscKhz() {
  constexpr uint64_t kWindowNs = 20'000'000;
  const uint64_t begin_ns = ClockNs();
  const uint64_t begin = platform::NowTicks();
  uint64_t now_ns = begin_ns;
  while (now_ns - begin_ns < kWindowNs) now_ns = ClockNs();
  return static_cast<uint32_t>((platform::NowTicks() - begin) * 1'000'000 / (now_ns - begin_ns));
}

Machine::Machine(Options options) : options_(std::move(options)) {}

Machine::~Machine() {
  if (memory_ != nullptr) munmap(memory_, options_.memory_bytes);
  for (std::byte* stack : stacks_) {
    ForgetFrames(stack);
    munmap(stack, kStackBytes);
  }
}

std::unique_ptr<Machine> Machine::Create(Options options, std::string* error) {
  std::unique_ptr<Machine> machine(new Machine(std::move(options)));
  if (!machine->Reserve(error)) return nullptr;
  machine->MakeKernel();
  return machine;
}

bool Machine::Reserve(std::string* error) {
  memory_ = MapZeroed(options_.memory_bytes);
  for (uint32_t i = 0; i < options_.cpus && memory_ != nullptr; ++i) {
    auto cpu = std::make_unique<Cpu>();
    cpu->machine = this;
    cpu->number = i;
    cpu->startup = i == 0 ? kInitSeen | kStartupSeen : kInitSeen;
    cpu->boot_stack = NewStack();
    if (cpu->boot_stack == nullptr) break;
    cpus_.push_back(std::move(cpu));
  }
  if (cpus_.size() == options_.cpus) return true;
  *error = std::string("cannot map the machine's memory: ") + strerror(errno) +
           "; use fewer CPUs, or raise the limit of address space (ulimit -v)";
  return false;
}

// The lowest page is a guard.
std::byte* Machine::NewStack() {
  std::byte* const stack = MapZeroed(kStackBytes);
  if (stack == nullptr) return nullptr;
  (void)mprotect(stack, 4096, PROT_NONE);
  while (stacks_lock_.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
  stacks_.push_back(stack);
  stacks_lock_.clear(std::memory_order_release);
  return stack;
}

void Machine::MakeKernel() {
  static_assert(sizeof(Kernel) < abi::kParamsGpa - abi::kImageGpa);
  memcpy(memory_ + abi::kParamsGpa, options_.boot_params.data(), options_.boot_params.size());
  auto& params = *reinterpret_cast<abi::BootParams*>(memory_ + abi::kParamsGpa);
  for (uint64_t* address : {&params.result_gpa, &params.slots_gpa, &params.percpu_gpa,
                            &params.boot_ring_gpa, &params.heap_gpa, &params.torture_gpa}) {
    if (*address != 0) *address += reinterpret_cast<uint64_t>(memory_);
  }
  Kernel& kernel = *new (memory_ + abi::kImageGpa) Kernel;
  TakeBootParams(kernel, params);
  kernel.result->trampoline_holder = abi::kNoCpu;
  kernel.init_function = options_.body;
}

End Machine::Run() {
  std::vector<std::thread> threads;
  threads.reserve(cpus_.size());
  for (const std::unique_ptr<Cpu>& cpu : cpus_) {
    threads.emplace_back([this, &cpu = *cpu] { RunCpu(cpu); });
  }
  for (std::thread& thread : threads) thread.join();
  End end;
  end.code = code_.load();
  const abi::ResultPage& result = *kernel().result;
  if (static_cast<abi::GuestStatus>(result.status) == abi::GuestStatus::kPanic) {
    end.panic = std::string(result.panic_file) + ":" + std::to_string(result.panic_line) + ": " +
                result.panic_text + " (CPU " + std::to_string(result.panic_cpu) + ")";
  }
  return end;
}

// A CPU's life: waits for INIT and SIPI, runs, is given up by INIT, and so on.
void Machine::RunCpu(Cpu& cpu) {
  sipi_threads_running.cpu = &cpu;
  NoteHostStack(cpu.host);
  while (!ended()) {
    uint32_t both = kInitSeen | kStartupSeen;
    if (!cpu.startup.compare_exchange_strong(both, 0)) {
      cpu.pending.store(0, std::memory_order_relaxed);
      WaitForAnything(cpu);
      continue;
    }
    cpu.pending.store(0, std::memory_order_relaxed);
    cpu.irqs = false;
    cpu.timer_ticks = ~uint64_t{0};
    PerCpu& self = kernel().percpu(CpuNumber(cpu.number));
    sipi_threads_running.self = &self;
    sipi_threads_running.current = self.current;  // set by the control CPU, where there are threads
    DropContext(cpu.boot);
    platform::InitContext(cpu.boot, cpu.boot_stack, Start, &cpu);
    platform::SwitchContext(cpu.host, cpu.boot);
  }
}

void Machine::Finish(uint32_t code) {
  bool running = false;
  if (ended_.compare_exchange_strong(running, true)) code_.store(code);
  for (const std::unique_ptr<Cpu>& cpu : cpus_) Kick(*cpu);
}

void LeaveForGood(Cpu& cpu) { LeaveContextForGood(cpu.host); }

}  // namespace sipi::threads

namespace sipi::platform {

uint32_t ReadPmTimer() {
  constexpr uint64_t kPmTimerHz = 3'579'545;  // ACPI 6.5, 4.8.3.3
  const uint64_t ns = threads::ClockNs();
  const uint64_t ticks =
      ns / 1'000'000'000 * kPmTimerHz + ns % 1'000'000'000 * kPmTimerHz / 1'000'000'000;
  return static_cast<uint32_t>(ticks & 0xffffff);
}

void WaitPmTicks(uint32_t begin, uint32_t ticks) {
  for (uint32_t turn = 0; ((ReadPmTimer() - begin) & 0xffffff) < ticks; ++turn) {
    threads::SpinOnce(turn);
  }
}

// The timer counts the TSC.
uint32_t MeasureBusKhz(uint32_t tsc_khz) { return tsc_khz; }

void SerialWrite(const char* text, uint64_t bytes) {
  for (uint64_t done = 0; done < bytes;) {
    const ssize_t written = write(STDOUT_FILENO, text + done, bytes - done);
    if (written <= 0) return;
    done += static_cast<uint64_t>(written);
  }
}

void TraceAt(uint64_t ticks, abi::TraceEvent event, uint16_t target, uint32_t value) {
  abi::PerCpuHeader& header = ThisCpu().header;
  const uint64_t at = header.ring_cursor;
  header.ring_cursor += sizeof(abi::TraceRecord);
  if (at >= header.ring_end) return;  // the cursor counts it as lost
  *reinterpret_cast<abi::TraceRecord*>(at) = {ticks, event, target, value};
}

void TracePacked(uint32_t event_and_target, uint32_t value) {
  TraceAt(NowTicks(), static_cast<abi::TraceEvent>(event_and_target & 0xffff),
          static_cast<uint16_t>(event_and_target >> 16), value);
}

void Exit(uint32_t code) {
  threads::Cpu& cpu = threads::Here();
  cpu.machine->Finish(code);
  threads::LeaveForGood(cpu);
}

namespace {

void CopyText(char* to, size_t size, const char* from) {
  const size_t length = strnlen(from, size - 1);
  memcpy(to, from, length);
  to[length] = 0;
}

}  // namespace

void Panic(const char* file, uint32_t line, const char* text) {
  threads::Cpu& cpu = threads::Here();
  cpu.irqs = false;
  abi::ResultPage& result = *cpu.machine->kernel().result;
  result.panic_cpu = cpu.number;
  result.panic_line = line;
  CopyText(result.panic_file, sizeof(result.panic_file), file);
  CopyText(result.panic_text, sizeof(result.panic_text), text);
  result.status = static_cast<uint32_t>(abi::GuestStatus::kPanic);
  Exit(1);
}

}  // namespace sipi::platform
