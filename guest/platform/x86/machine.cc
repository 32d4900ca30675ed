// What the kernel asks of the machine and what is too long to inline.
#include "guest/platform/x86/machine.h"

#include <cstddef>

#include "guest/platform/x86/asm_constants.h"

namespace sipi::platform {

static_assert(SIPI_TRAMPOLINE_PAGE == abi::kTrampolineGpa);
static_assert(SIPI_TRAMPOLINE_PARAMS == kTrampolineParamsOffset);
static_assert(SIPI_APIC_HASH_MULTIPLIER == abi::kApicHashMultiplier);
static_assert(SIPI_YIELD_PORT == abi::kYieldPort);
static_assert(SIPI_WAKE_VECTOR == abi::kWakeVector);
static_assert(offsetof(abi::ResultPage, trampoline_holder) == SIPI_RESULT_HOLDER);
static_assert(offsetof(abi::ResultPage, unknown_apic_ids) == SIPI_RESULT_UNKNOWN_COUNT);
static_assert(offsetof(abi::ResultPage, unknown_apic_id) == SIPI_RESULT_UNKNOWN_ID);
static_assert(offsetof(abi::PerCpuHeader, self) == SIPI_PERCPU_SELF);
static_assert(offsetof(PerCpu, current) == 32);  // CurrentThread()
static_assert(offsetof(TrampolineParams, result) == 56);

namespace {

struct CpuidResult {
  uint32_t eax, ebx, ecx, edx;
};

CpuidResult Cpuid(uint32_t leaf, uint32_t subleaf) {
  CpuidResult r;
  asm volatile("cpuid"
               : "=a"(r.eax), "=b"(r.ebx), "=c"(r.ecx), "=d"(r.edx)
               : "a"(leaf), "c"(subleaf));
  return r;
}

}  // namespace

bool InvariantTsc() {  // SDM vol 3B, 18.17.1: CPUID.80000007H:EDX[8]
  return Cpuid(0x80000000, 0).eax >= 0x80000007 && (Cpuid(0x80000007, 0).edx & 1u << 8) != 0;
}

bool HasTscDeadline() { return (Cpuid(1, 0).ecx & 1u << 24) != 0; }  // CPUID.01H:ECX[24]

bool HasTopologyLeaf() { return Cpuid(0, 0).eax >= 0xb && Cpuid(0xb, 0).ebx != 0; }

bool EncryptedGuest() {  // TDX: leaf 21H names itself "IntelTDX    "
  if (Cpuid(0, 0).eax < 0x21) return false;
  const CpuidResult r = Cpuid(0x21, 0);
  return r.ebx == 0x65746e49 && r.edx == 0x5844546c && r.ecx == 0x20202020;
}

void ApicWriteIcrXApic(uint32_t low, uint32_t dest) {
  const auto reg = [](apic::Reg r) {
    return reinterpret_cast<volatile uint32_t*>(apic::kApicBaseGpa + static_cast<uint64_t>(r));
  };
  // An interrupt between the two halves could send an IPI of its own and change the upper half.
  const bool irqs = IrqsEnabled();
  IrqDisable();
  if ((low >> 18 & 3) == 0) *reg(apic::Reg::kIcrHigh) = dest << 24;
  *reg(apic::Reg::kIcrLow) = low;
  if (irqs) IrqEnable();
}

void WaitPmTicks(uint32_t begin, uint32_t ticks) {
  while (((ReadPmTimer() - begin) & 0xffffff) < ticks) Pause();
}

uint32_t MeasureBusKhz(uint32_t tsc_khz) {
  constexpr uint32_t kWindowUs = 100;
  ApicWrite(apic::Reg::kLvtTimer, apic::kLvtMasked);
  constexpr uint32_t kDivideBy1 = 0xb;
  ApicWrite(apic::Reg::kTimerDivide, kDivideBy1);
  ApicWrite(apic::Reg::kTimerInitial, 0xffffffff);
  const uint64_t begin = NowTicks();
  const uint32_t count_begin = ApicRead(apic::Reg::kTimerCurrent);
  SpinTicks(begin + uint64_t{tsc_khz} * kWindowUs / 1000);
  const uint32_t count_end = ApicRead(apic::Reg::kTimerCurrent);
  const uint64_t ticks = NowTicks() - begin;
  ApicWrite(apic::Reg::kTimerInitial, 0);
  return static_cast<uint32_t>(uint64_t{count_begin - count_end} * tsc_khz / ticks);
}

void CacheSetup() {
  constexpr uint32_t kMsrPat =
      0x277;  // SDM vol 3A, 12.12: written with what it holds, as a set-up that changes nothing
  WriteMsr(kMsrPat, ReadMsr(kMsrPat));
}

void PrepareStartup(Kernel& kernel) {
  const abi::BootParams& boot = *kernel.params;
  const uint8_t* from = sipi_trampoline_image;
  auto* to = reinterpret_cast<uint8_t*>(abi::kTrampolineGpa);
  uint64_t words = kTrampolineParamsOffset / 8;
  asm volatile("cld; rep movsq" : "+S"(from), "+D"(to), "+c"(words)::"memory");
  auto& params =
      *reinterpret_cast<TrampolineParams*>(abi::kTrampolineGpa + kTrampolineParamsOffset);
  params.lock = 0;
  params.use_lock = boot.knobs.trampoline_lock;
  params.cr3 = static_cast<uint32_t>(reinterpret_cast<uint64_t>(sipi_pml4));
  params.want_x2apic = g_x2apic ? 1 : 0;
  params.id_source = static_cast<uint32_t>(boot.knobs.ap_id_source);
  params.hash_shift = 32 - boot.apic_hash_bits;
  params.hash_mask = (1u << boot.apic_hash_bits) - 1;
  params.stride_bytes = boot.percpu_stride_bytes;
  params.hash = reinterpret_cast<uint64_t>(&boot) + boot.apic_hash_offset;
  params.percpu = boot.percpu_gpa;
  params.kernel = reinterpret_cast<uint64_t>(&kernel);
  params.result = boot.result_gpa;
}

namespace {

void CopyText(char* to, size_t size, const char* from) {
  size_t i = 0;
  for (; i + 1 < size && from[i] != 0; ++i) to[i] = from[i];
  to[i] = 0;
}

// Whatever holds the trampoline's lock when the run ends is worth a word in the report.
void LeaveLockWord(abi::ResultPage& result) {
  const auto& params =
      *reinterpret_cast<TrampolineParams*>(abi::kTrampolineGpa + kTrampolineParamsOffset);
  result.trampoline_lock = params.lock;
}

}  // namespace

void Exit(uint32_t code) {
  if (code == 0) LeaveLockWord(*ThisCpu().kernel->result);
  Out32(abi::kExitPort, code);
  HaltForever();
}

void Panic(const char* file, uint32_t line, const char* text) {
  IrqDisable();
  PerCpu& self = ThisCpu();
  abi::ResultPage& result = *self.kernel->result;
  result.panic_cpu = self.cpu.value;
  result.panic_line = line;
  CopyText(result.panic_file, sizeof(result.panic_file), file);
  CopyText(result.panic_text, sizeof(result.panic_text), text);
  LeaveLockWord(result);
  result.status = static_cast<uint32_t>(abi::GuestStatus::kPanic);
  Exit(1);
}

// Each of these is what a broken kernel would do by accident.
void Break(const abi::FaultSpec& fault) {
  switch (fault.kind) {
    case abi::Fault::kTripleFault: {
      struct [[gnu::packed]] {
        uint16_t limit = 0;
        uint64_t base = 0;
      } none;
      asm volatile("lidt %0; ud2" ::"m"(none));
      return;
    }
    case abi::Fault::kHang:
      IrqDisable();
      for (;;) asm volatile("" ::: "memory");
    case abi::Fault::kBadInsn:
      asm volatile("ud2");
      return;
    case abi::Fault::kException:
      asm volatile("xorl %%ecx, %%ecx; xorl %%edx, %%edx; movl $1, %%eax; divl %%ecx" ::
                       : "eax", "ecx", "edx");
      return;
    case abi::Fault::kWildMmio: {
      auto* nowhere = reinterpret_cast<volatile uint32_t*>(0xd0000000);
      nowhere[0] = nowhere[1];
      return;
    }
    case abi::Fault::kWildIcr:
      for (uint32_t mode = 0; mode < 8; ++mode)
        ApicWriteIcr(mode << 8 | apic::kIcrAssert | 0x20, 0x00fffff0);
      return;
    default:
      return;
  }
}

}  // namespace sipi::platform

extern "C" void SipiInterrupt(sipi::platform::InterruptFrame* frame) {
  using namespace sipi;  // NOLINT: a C entry point
  PerCpu& self = platform::ThisCpu();
  if (frame->vector == abi::kSpuriousVector) return;  // no EOI (SDM vol 3A, 11.9)
  if (frame->vector >= 32) {
    HandleInterrupt(self, Vector(static_cast<uint8_t>(frame->vector)));
    if (self.need_resched != 0) {
      platform::FinishTraceClaim(frame->rip, frame->rcx, frame->rflags, self.header.ring_end);
      PreemptAfterInterrupt();
    }
    return;
  }
  abi::ResultPage& result = *self.kernel->result;
  result.fault_cpu = self.cpu.value;
  result.fault_vector = static_cast<uint32_t>(frame->vector);
  result.fault_error_code = frame->error_code;
  result.fault_rip = frame->rip;
  result.fault_rsp = frame->rsp;
  asm volatile("movq %%cr2, %0" : "=r"(result.fault_cr2));
  result.status = static_cast<uint32_t>(abi::GuestStatus::kFault);
  platform::Trace(abi::TraceEvent::kFault, 0, static_cast<uint32_t>(frame->vector));
  platform::Exit(1);
}
