#include "vmm/machine/diagnosis.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "guest/abi/boot_params.h"
#include "vmm/timeline/run_record.h"

namespace sipi {
namespace {

constexpr size_t kMostCpus = 8;  // named in one diagnosis; RunRecord::cpus has all

// A text of the guest's, which need not end in a zero nor be printable.
template <size_t N>
std::string GuestText(const char (&text)[N]) {
  std::string clean(text, strnlen(text, N));
  for (char& c : clean) {
    if (c < ' ' || c > '~') c = '?';
  }
  return clean;
}

const char* ExceptionName(uint32_t vector) {
  static constexpr const char* kNames[] = {"divide error",
                                           "debug",
                                           "NMI",
                                           "breakpoint",
                                           "overflow",
                                           "BOUND",
                                           "invalid opcode",
                                           "no device",
                                           "double fault",
                                           "coprocessor overrun",
                                           "invalid TSS",
                                           "segment not present",
                                           "stack fault",
                                           "general protection",
                                           "page fault"};
  return vector < std::size(kNames) ? kNames[vector] : "exception";
}

// "CPU 5 (APIC ID 10): waiting for SIPI; handshake kicked, step cpu:kick_ap".
std::string DescribeCpu(const RunRecord& record, const CpuFinal& cpu) {
  const std::string failure = FailureText(record, cpu, WhichFailure::kLast);
  return absl::StrCat("CPU ", cpu.cpu.value, " (APIC ID ", cpu.apic_id.value,
                      "): ", cpu.doing.empty() ? "" : cpu.doing + "; ", "handshake ",
                      abi::Name(cpu.sync_state), ", step ", abi::Name(cpu.cpuhp_state),
                      failure.empty() ? "" : ", ", failure);
}

// The CPUs that `wanted` picks, a few by name and the rest by number.
template <class Wanted>
std::string ListCpus(const RunRecord& record, Wanted wanted) {
  std::string text;
  size_t count = 0;
  for (const CpuFinal& cpu : record.cpus) {
    if (!wanted(cpu)) continue;
    if (count++ < kMostCpus)
      absl::StrAppend(&text, text.empty() ? "" : " | ", DescribeCpu(record, cpu));
  }
  if (count > kMostCpus) absl::StrAppend(&text, " | and ", count - kMostCpus, " more");
  return text;
}

std::string AllCpus(const RunRecord& record) {
  return ListCpus(record, [](const CpuFinal&) { return true; });
}

std::string GuestExitText(const RunEnd& end, const abi::ResultPage& result) {
  switch (static_cast<abi::GuestStatus>(result.status)) {
    case abi::GuestStatus::kPanic:
      return absl::StrCat("guest panic on CPU ", result.panic_cpu, ": ",
                          GuestText(result.panic_file), ":", result.panic_line, ": ",
                          GuestText(result.panic_text));
    case abi::GuestStatus::kFault:
      return absl::StrFormat(
          "guest exception on CPU %u: %s (vector %u), error code 0x%x, RIP 0x%x, CR2 0x%x, RSP "
          "0x%x",
          result.fault_cpu, ExceptionName(result.fault_vector), result.fault_vector,
          result.fault_error_code, result.fault_rip, result.fault_cr2, result.fault_rsp);
    default:
      return absl::StrFormat(
          "CPU %u ended the machine with exit status 0x%x before the scenario was done",
          end.cpu.value, end.code);
  }
}

bool IsMissing(const CpuFinal& cpu) { return cpu.wanted && !cpu.online; }

// Counted one by one: siblings that are left out may have come, and make up for nobody.
uint32_t MissingCpus(const RunRecord& record) {
  return static_cast<uint32_t>(std::count_if(record.cpus.begin(), record.cpus.end(), IsMissing));
}

std::string PartialText(const RunRecord& record) {
  return absl::StrCat(MissingCpus(record), " of ", record.cpus_wanted,
                      " CPUs are not online: ", ListCpus(record, IsMissing));
}

}  // namespace

Outcome OutcomeOf(EndKind kind) {
  switch (kind) {
    case EndKind::kGuestExit:
      return Outcome::kGuestExit;
    case EndKind::kGuestReset:
      return Outcome::kGuestReset;
    case EndKind::kAllHalted:
      return Outcome::kAllHalted;
    case EndKind::kTimeLimit:
      return Outcome::kTimeLimit;
    case EndKind::kSignal:
      return Outcome::kInterrupted;
    case EndKind::kNone:
    case EndKind::kFault:
    case EndKind::kHostError:
      break;
  }
  return Outcome::kGuestFault;
}

Outcome OutcomeOf(const RunEnd& end, const abi::ResultPage& result, const RunRecord& record) {
  if (end.kind == EndKind::kGuestReset) return Outcome::kGuestFault;  // there is no board to reset
  if (end.kind != EndKind::kGuestExit) return OutcomeOf(end.kind);
  if (static_cast<abi::GuestStatus>(result.status) != abi::GuestStatus::kDone) {
    return Outcome::kGuestFault;
  }
  return MissingCpus(record) == 0 ? Outcome::kComplete : Outcome::kPartial;
}

std::string Diagnose(const RunEnd& end, const abi::ResultPage& result, int64_t time_limit_ms,
                     const RunRecord& record) {
  switch (record.outcome) {
    case Outcome::kComplete:
      return "";
    case Outcome::kPartial:
      return PartialText(record);
    case Outcome::kAllHalted:
      return absl::StrCat("all CPUs are halted and nothing can wake them: ", AllCpus(record));
    case Outcome::kTimeLimit:
      return absl::StrCat("the time limit of ", time_limit_ms,
                          " ms is over; what the CPUs were doing: ", AllCpus(record));
    case Outcome::kInterrupted:
      return absl::StrCat("ended by signal ", end.code,
                          "; what the CPUs were doing: ", AllCpus(record));
    case Outcome::kGuestExit:  // payloads only, as is the next
    case Outcome::kGuestReset:
    case Outcome::kGuestFault:
      break;
  }
  return end.kind == EndKind::kGuestExit ? GuestExitText(end, result) : end.text;
}

void AddSerial(const OutputSummary& serial, RunRecord& record) {
  std::string dropped = DescribeDropped(serial);
  if (dropped.empty()) return;
  record.serial_failed = serial.error != 0 && serial.error != EPIPE;
  if (!record.serial_failed) return record.notes.push_back(std::move(dropped));
  absl::StrAppend(&dropped, "; give --serial another place, or none");
  absl::StrAppend(&record.diagnosis, record.diagnosis.empty() ? "" : "; ", dropped);
}

void AddNotes(const abi::ResultPage& result, RunRecord& record) {
  switch (static_cast<abi::Veto>(result.veto)) {
    case abi::Veto::kNone:
      break;
    case abi::Veto::kVendor:
      record.notes.push_back(
          "parallel bring-up refused: this CPU vendor is on the veto list; "
          "serial was used");
      break;
    case abi::Veto::kNoLeafB:
      record.notes.push_back(
          "parallel bring-up refused: CPUID has no leaf 0xB to take APIC IDs "
          "from; serial was used");
      break;
    case abi::Veto::kEncrypted:
      record.notes.push_back(
          "parallel bring-up refused: the guest's memory is encrypted; serial "
          "was used");
      break;
  }
  if (result.reuse_refused != 0) {
    record.notes.push_back("+reuse refused: the TSC is not invariant; every CPU calibrated itself");
  }
  if (result.unknown_apic_ids != 0) {
    record.notes.push_back(
        absl::StrCat(result.unknown_apic_ids,
                     " CPUs parked because their APIC ID is not in the table (the last: ",
                     result.unknown_apic_id, ")"));
  }
  if (result.tsc_backward_ticks != 0) {
    record.notes.push_back(
        absl::StrCat("TSC check: a CPU's TSC is behind by ", result.tsc_backward_ticks, " ticks"));
  }
}

}  // namespace sipi
