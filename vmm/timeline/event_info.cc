#include "vmm/timeline/event_info.h"

#include <array>
#include <cstdio>
#include <unordered_map>

#include "apic/regs/icr.h"
#include "guest/abi/boot_params.h"
#include "guest/abi/cpuhp_state.h"
#include "guest/abi/handshake.h"
#include "guest/abi/layout.h"
#include "guest/abi/percpu.h"
#include "vmm/timeline/scenario_names.h"

namespace sipi {
namespace {

using abi::TraceEvent;

// Numbers above this name nothing; the enum is append only.
constexpr uint16_t kEventLimit = 256;

std::string DescribeIcr(uint32_t low) {
  const apic::Icr icr = apic::Icr::FromLow(low, 0);
  static constexpr std::array<const char*, 8> kModes = {
      "fixed", "lowest-priority", "smi", "reserved", "nmi", "init", "startup", "extint"};
  static constexpr std::array<const char*, 4> kShorthands = {"", " to self", " to all",
                                                             " to all-but-self"};
  const bool deassert =
      icr.mode == apic::DeliveryMode::kInit && icr.level_triggered && !icr.assert_level;
  std::array<char, 64> text;
  std::snprintf(text.data(), text.size(), "%s%s 0x%02x%s", kModes[static_cast<size_t>(icr.mode)],
                deassert ? " de-assert" : "", icr.vector.value,
                kShorthands[static_cast<size_t>(icr.shorthand)]);
  return text.data();
}

const char* DescribeVeto(uint32_t veto) {
  switch (static_cast<abi::Veto>(veto)) {
    case abi::Veto::kNone:
      return "none";
    case abi::Veto::kVendor:
      return "vendor";
    case abi::Veto::kNoLeafB:
      return "no CPUID leaf 0xB";
    case abi::Veto::kEncrypted:
      return "encrypted guest";
  }
  return "?";
}

std::string Hex(uint32_t value) {
  std::array<char, 16> text;
  std::snprintf(text.data(), text.size(), "0x%02x", value);
  return text.data();
}

// Of the scheduler, hotplug and RCU.
EventInfo ServiceInfoOf(TraceEvent event) {
  switch (event) {
    case TraceEvent::kHotplugAsked:
    case TraceEvent::kHotplugBegin:
      return {true, ValueKind::kCpuhpState};
    case TraceEvent::kDead:
    case TraceEvent::kExpIpi:
    case TraceEvent::kWorkerRanAway:
      return {true, ValueKind::kNone};
    case TraceEvent::kHotplugEnd:
    case TraceEvent::kSmtEnd:  // its target is a number of threads
    case TraceEvent::kCallbacksMigrated:
    case TraceEvent::kRcuStall:
    case TraceEvent::kGpStarved:
    case TraceEvent::kWorkerPinned:
    case TraceEvent::kMigrated:
      return {true, ValueKind::kNumber};
    case TraceEvent::kSmtBegin:  // likewise
      return {true, ValueKind::kApproach};
    case TraceEvent::kSyncBegin:
    case TraceEvent::kSyncEnd:
      return {false, ValueKind::kGracePeriod};
    case TraceEvent::kThread:
    case TraceEvent::kGpBegin:
    case TraceEvent::kGpFqs:
    case TraceEvent::kGpEnd:
    case TraceEvent::kExpBegin:
    case TraceEvent::kExpEnd:
    case TraceEvent::kCallbacks:
    case TraceEvent::kExpediteNesting:
    case TraceEvent::kRefPoint:
    case TraceEvent::kTortureFailure:
      return {false, ValueKind::kNumber};
    default:
      return {};
  }
}

}  // namespace

EventInfo InfoOf(TraceEvent event) {
  switch (event) {
    case TraceEvent::kCpuhpEnter:
    case TraceEvent::kStepFailed:
      return {true, ValueKind::kCpuhpState};
    case TraceEvent::kOnline:
    case TraceEvent::kKickBegin:
    case TraceEvent::kKickEnd:
    case TraceEvent::kWaitAliveBegin:
    case TraceEvent::kWaitAliveEnd:
    case TraceEvent::kRelease:
    case TraceEvent::kTscCheckBegin:
      return {true, ValueKind::kNone};
    case TraceEvent::kTscCheckEnd:
      return {true, ValueKind::kTicks};
    case TraceEvent::kTimeout:
      return {true, ValueKind::kSyncState};
    case TraceEvent::kRetry:
      return {true, ValueKind::kGuestError};
    case TraceEvent::kIcrWrite:
    case TraceEvent::kIpiSent:
      return {true, ValueKind::kIcr};
    case TraceEvent::kCalibrateReused:
      return {true, ValueKind::kTscKhz};
    case TraceEvent::kCalibrateBegin:  // its window in microseconds
    case TraceEvent::kSmpbootEnd:
    case TraceEvent::kPassBegin:
    case TraceEvent::kPassEnd:
    case TraceEvent::kScenario:
    case TraceEvent::kSipiDropped:
      return {false, ValueKind::kNumber};
    case TraceEvent::kCalibrateEnd:
      return {false, ValueKind::kTscKhz};
    case TraceEvent::kCalibrateRejected:
      return {false, ValueKind::kNanoseconds};
    case TraceEvent::kVeto:
      return {false, ValueKind::kVeto};
    case TraceEvent::kFault:
    case TraceEvent::kSipiDelivered:
    case TraceEvent::kSipiIgnored:
      return {false, ValueKind::kVector};
    case TraceEvent::kUnknownApicId:
      return {false, ValueKind::kApicId};
    case TraceEvent::kImposedBegin:
    case TraceEvent::kImposedEnd:
      return {false, ValueKind::kCharge};
    default:
      return ServiceInfoOf(event);
  }
}

bool IsEvent(TraceEvent event) {
  return event != TraceEvent::kNone && event != TraceEvent::kHostFirst &&
         abi::Name(event)[0] != '?';
}

std::optional<TraceEvent> EventByName(std::string_view name) {
  static const auto* const by_name = [] {
    auto* map = new std::unordered_map<std::string_view, TraceEvent>;
    for (uint16_t i = 0; i < kEventLimit; ++i) {
      const auto event = static_cast<TraceEvent>(i);
      if (IsEvent(event)) map->emplace(abi::Name(event), event);
    }
    return map;
  }();
  const auto found = by_name->find(name);
  if (found == by_name->end()) return std::nullopt;
  return found->second;
}

const char* GuestErrorName(uint32_t error) {
  switch (static_cast<abi::GuestError>(error)) {
    case abi::GuestError::kNone:
      return "";
    case abi::GuestError::kTimeoutAlive:
      return "gave no sign of life in time";
    case abi::GuestError::kTimeoutOnline:
      return "did not come online in time";
    case abi::GuestError::kStepFailed:
      return "a cpuhp step failed";
    case abi::GuestError::kCancelled:
      return "cancelled";
    case abi::GuestError::kInvalid:
      return "hotplug was asked for what cannot be";
    case abi::GuestError::kNotBootable:
      return "kept off by SMT control";
    case abi::GuestError::kTimeoutDead:
      return "did not report dead in time";
  }
  return "unknown error";
}

const char* ChargeName(uint32_t kind) {
  switch (static_cast<abi::Charge>(kind)) {
    case abi::Charge::kNone:
      return "none";
    case abi::Charge::kStartup:
      return "startup";
    case abi::Charge::kInit:
      return "init";
    case abi::Charge::kMicrocode:
      return "microcode";
    case abi::Charge::kCacheSetup:
      return "cache-setup";
    case abi::Charge::kIdentify:
      return "identify";
    case abi::Charge::kOnlineSteps:
      return "online-steps";
    case abi::Charge::kSchedDomains:
      return "sched-domains";
  }
  return "?";
}

const char* ValueKey(ValueKind kind) {
  switch (kind) {
    case ValueKind::kCpuhpState:
    case ValueKind::kSyncState:
      return "state";
    case ValueKind::kIcr:
      return "icr";
    case ValueKind::kVector:
      return "vector";
    case ValueKind::kCharge:
      return "charge";
    case ValueKind::kVeto:
      return "veto";
    case ValueKind::kGracePeriod:
      return "kind";
    case ValueKind::kApproach:
      return "approach";
    case ValueKind::kGuestError:
      return "error";
    default:
      return "value";
  }
}

std::string DescribeValue(TraceEvent event, uint32_t value) {
  switch (InfoOf(event).value) {
    case ValueKind::kCpuhpState:
      return abi::Name(static_cast<abi::CpuhpState>(value));
    case ValueKind::kSyncState:
      return abi::Name(static_cast<abi::SyncState>(value));
    case ValueKind::kIcr:
      return DescribeIcr(value);
    case ValueKind::kVector:
      return Hex(value);
    case ValueKind::kCharge:
      return ChargeName(value);
    case ValueKind::kVeto:
      return DescribeVeto(value);
    case ValueKind::kGracePeriod:
      return Name(static_cast<abi::GracePeriodKind>(value));
    case ValueKind::kApproach:
      return Name(static_cast<abi::SmtApproach>(value));
    case ValueKind::kGuestError:
      return GuestErrorName(value);
    case ValueKind::kNone:
    case ValueKind::kNumber:
    case ValueKind::kTscKhz:
    case ValueKind::kNanoseconds:
    case ValueKind::kApicId:
    case ValueKind::kTicks:
      return {};
  }
  return {};
}

}  // namespace sipi
