#include "vmm/cli/fault_flag.h"

#include <cstddef>
#include <limits>

#include "absl/strings/str_cat.h"
#include "guest/abi/cpuhp_state.h"
#include "guest/abi/step_failure.h"
#include "vmm/base/status_macros.h"
#include "vmm/cli/flag_values.h"

namespace sipi {
namespace {

using abi::CpuhpState;
using abi::Fault;

constexpr char kFlag[] = "--fault";
constexpr char kNeedsAp[] = "needs an AP; give --cpus=2 or more";

const Choices<Fault>& FaultChoices() {
  static const Choices<Fault> choices = {{"no-start", Fault::kNoStart},
                                         {"lost-init", Fault::kLostInit},
                                         {"lost-sipi1", Fault::kLostSipi1},
                                         {"lost-sipi2", Fault::kLostSipi2},
                                         {"lost-sipis", Fault::kLostSipis},
                                         {"triple-fault", Fault::kTripleFault},
                                         {"hang", Fault::kHang},
                                         {"halt-all", Fault::kHaltAll},
                                         {"bad-insn", Fault::kBadInsn},
                                         {"exception", Fault::kException},
                                         {"late", Fault::kLate},
                                         {"fail-step", Fault::kFailStep},
                                         {"wild-mmio", Fault::kWildMmio},
                                         {"wild-icr", Fault::kWildIcr},
                                         {"tsc-ahead", Fault::kTscAhead}};
  return choices;
}

// The boot CPU gets no INIT and no SIPI, and no cpuhp step runs for it.
bool NeedsAp(Fault kind) {
  switch (kind) {
    case Fault::kNoStart:
    case Fault::kLostInit:
    case Fault::kLostSipi1:
    case Fault::kLostSipi2:
    case Fault::kLostSipis:
    case Fault::kLate:
    case Fault::kFailStep:
    case Fault::kTscAhead:
      return true;
    default:
      return false;
  }
}

// What a value of that kind is called; null: it takes none, or needs none.
const char* ValueOf(Fault kind) {
  switch (kind) {
    case Fault::kLate:
      return "MILLISECONDS";
    case Fault::kFailStep:
      return "STATE";
    case Fault::kTscAhead:
      return "TICKS";
    default:
      return nullptr;
  }
}

// Every state on the way, by sysfs name.
Choices<uint64_t> StateChoices() {
  Choices<uint64_t> choices;
  for (uint32_t n = 1; n < static_cast<uint32_t>(CpuhpState::kOnline); ++n) {
    const std::string name = abi::Name(static_cast<CpuhpState>(n));
    if (name != "?") choices.emplace_back(name, n);
  }
  return choices;
}

absl::StatusOr<uint64_t> ParseState(const std::string& text) {
  const Choices<uint64_t> states = StateChoices();
  for (const auto& [name, number] : states) {
    if (text != name && text != absl::StrCat(number)) continue;
    if (abi::StepCanFail(static_cast<CpuhpState>(number))) return number;
    return FlagError(kFlag, absl::StrCat("step ", name, " (", number,
                                         ") cannot fail: nothing from ap:offline (85) to "
                                         "ap:online-idle (143) can but cpu:teardown (142); name "
                                         "another one"));
  }
  return UnknownName(kFlag, text, NamesOf(states));
}

absl::StatusOr<uint64_t> ParseValue(Fault kind, const std::string& text) {
  if (kind == Fault::kFailStep) return ParseState(text);
  constexpr uint64_t kMaxTicksAhead = 1'000'000'000;  // half a second of the simulated TSC
  uint64_t max = std::numeric_limits<uint64_t>::max();
  if (kind == Fault::kLate) max = 3'600'000;
  if (kind == Fault::kTscAhead) max = kMaxTicksAhead;
  return ParseNumber(kFlag, text, kind == Fault::kTscAhead ? 1 : 0, max);
}

}  // namespace

std::vector<std::string> FaultNames() { return NamesOf(FaultChoices()); }

absl::StatusOr<abi::FaultSpec> ParseFault(const std::string& text, uint32_t cpus) {
  abi::FaultSpec fault;
  const size_t at = text.find('@');
  const std::string kind = text.substr(0, at);
  ASSIGN_OR_RETURN(fault.kind, ParseChoice<Fault>(kFlag, kind, FaultChoices()));
  if (at == std::string::npos) {
    if (fault.kind == Fault::kHaltAll) return fault;
    return FlagError(kFlag, absl::StrCat(Quoted(text), " names no CPU; write ", kind, "@CPU",
                                         ValueOf(fault.kind) != nullptr ? ":VALUE" : ""));
  }
  const std::string rest = text.substr(at + 1);
  const size_t colon = rest.find(':');
  const uint32_t least = NeedsAp(fault.kind) ? 1 : 0;
  if (cpus <= least) {
    return FlagError(kFlag, absl::StrCat(kind, " ", kNeedsAp));
  }
  ASSIGN_OR_RETURN(const uint64_t cpu, ParseNumber(absl::StrCat(kFlag, "=", kind, "@CPU"),
                                                   rest.substr(0, colon), least, cpus - 1));
  fault.cpu = static_cast<uint32_t>(cpu);
  if (colon != std::string::npos) {
    ASSIGN_OR_RETURN(fault.value, ParseValue(fault.kind, rest.substr(colon + 1)));
  } else if (ValueOf(fault.kind) != nullptr) {
    return FlagError(kFlag, absl::StrCat(kind, " needs a value; write ", kind, "@", cpu, ":",
                                         ValueOf(fault.kind)));
  }
  return fault;
}

absl::StatusOr<std::vector<uint32_t>> ParseFirmwareLies(const std::string& text, uint32_t cpus) {
  constexpr char kLiesFlag[] = "--firmware-lies";
  if (cpus < 2) return FlagError(kLiesFlag, kNeedsAp);
  return ParseNumberList(kLiesFlag, text, 1, cpus - 1);
}

}  // namespace sipi
