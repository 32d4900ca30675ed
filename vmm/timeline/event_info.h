// What an event's `target` and `value` mean, and the way back from its name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "guest/abi/trace.h"

namespace sipi {

enum class ValueKind {
  kNone,
  kNumber,
  kCpuhpState,
  kSyncState,
  kIcr,     // ICR bits 31:0
  kVector,  // SIPI vector or exception
  kTscKhz,
  kNanoseconds,
  kCharge,  // abi::Charge
  kVeto,    // abi::Veto
  kApicId,
  kGuestError,  // abi::GuestError
  kTicks,
  kGracePeriod,  // abi::GracePeriodKind
  kApproach,     // abi::SmtApproach
};

struct EventInfo {
  bool has_target = false;
  ValueKind value = ValueKind::kNone;
};

EventInfo InfoOf(abi::TraceEvent event);

// True for the events of guest/abi/trace.h; false for other numbers, and for the two that are no
// events (none, host-first).
bool IsEvent(abi::TraceEvent event);

// The inverse of abi::Name; nothing for an unknown name.
std::optional<abi::TraceEvent> EventByName(std::string_view name);

// `value` in words, e.g. "cpu:kick_ap", "startup 0x08 to all-but-self", "should-online"; empty
// where it is a number that speaks for itself or where the event has none.
std::string DescribeValue(abi::TraceEvent event, uint32_t value);

// The key under which DescribeValue's words stand in files: "state", "icr", "vector", "charge",
// "veto"; "value" for the rest.
const char* ValueKey(ValueKind kind);

// "gave no sign of life in time" and so on: the kinds of abi::GuestError; "" for none.
const char* GuestErrorName(uint32_t error);

// "microcode", "startup", ...: the kinds of abi::Charge.
const char* ChargeName(uint32_t kind);

}  // namespace sipi
