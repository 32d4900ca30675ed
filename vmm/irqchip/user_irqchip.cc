#include "vmm/irqchip/user_irqchip.h"

#include <utility>

#include "apic/model/local_apic.h"
#include "guest/abi/startup_fault.h"
#include "vmm/base/tsc.h"

namespace sipi {

using abi::TraceEvent;
using apic::DeliveryMode;

SendCounters& SendCounters::operator+=(const SendCounters& other) {
  ipis += other.ipis;
  inits += other.inits;
  sipis += other.sipis;
  sipis_ignored += other.sipis_ignored;
  startup_dropped += other.startup_dropped;
  undeliverable += other.undeliverable;
  futex_wakes += other.futex_wakes;
  signal_wakes += other.signal_wakes;
  return *this;
}

UserIrqchip::UserIrqchip(std::span<const ApicId> ids, apic::ApicMode mode,
                         const abi::FaultSpec& fault, MailboxOf mailbox_of, bool kvm_icr)
    : routing_(ids), fault_(fault), mailbox_of_(std::move(mailbox_of)), kvm_icr_(kvm_icr) {
  // As the CPUs' own APICs will say once their threads run: an INIT must find them before.
  for (uint32_t cpu = 0; cpu < routing_.size(); ++cpu) {
    apic::LocalApic apic(ids[cpu], cpu == 0);
    apic.Reset(cpu == 0, mode);
    routing_.Publish(CpuNumber(cpu), apic.Routing());
  }
}

void UserIrqchip::Send(const apic::Icr& icr, CpuNumber sender, SendCounters& counters) {
  if (kvm_icr_ && !apic::IsDeliverable(icr)) return SendInvalid(icr, sender, counters);
  bool reached = false;
  routing_.ForEachTarget(icr, sender, [&](CpuNumber target) {
    reached = true;
    Deliver(icr, /*level=*/false, target, counters);
  });
  if (!reached) ++counters.undeliverable;
}

void UserIrqchip::SendInvalid(const apic::Icr& icr, CpuNumber sender, SendCounters& counters) {
  const bool self = icr.shorthand == apic::Shorthand::kSelf;
  const bool all = icr.shorthand == apic::Shorthand::kAllIncludingSelf;
  const bool de_assert =
      icr.mode == DeliveryMode::kInit && icr.level_triggered && !icr.assert_level;
  // KVM drops these too (arch/x86/kvm/lapic.c, __apic_accept_irq).
  const bool dropped = icr.mode == DeliveryMode::kExtInt || icr.mode == DeliveryMode::kReserved3;
  if ((!self && !all) || de_assert || dropped) {
    ++counters.undeliverable;
    return;
  }
  if (all) {
    apic::Icr others = icr;
    others.shorthand = apic::Shorthand::kAllExcludingSelf;
    Send(others, sender, counters);
  }
  Deliver(icr, /*level=*/false, sender, counters);
}

bool UserIrqchip::SendDevice(const apic::Icr& icr, SendCounters& counters) {
  bool reached = false;
  routing_.ForEachDeviceTarget(icr, [&](CpuNumber target) {
    reached = true;
    Deliver(icr, icr.level_triggered, target, counters);
  });
  if (!reached) ++counters.undeliverable;
  return reached;
}

// Interrupts between CPUs are edge-triggered, whatever their command says (SDM vol 3A, 11.8.4).
void UserIrqchip::Deliver(const apic::Icr& icr, bool level, CpuNumber target,
                          SendCounters& counters) {
  switch (icr.mode) {
    case DeliveryMode::kFixed:
    case DeliveryMode::kLowestPriority:
      SendVector(target, icr.vector, level, counters);
      return;
    case DeliveryMode::kNmi:
      ++counters.ipis;
      counters.Count(mailbox_of_(target).PostNmi());
      return;
    case DeliveryMode::kInit:
      SendInit(target, counters);
      return;
    case DeliveryMode::kStartUp:
      SendSipi(target, icr.vector, counters);
      return;
    case DeliveryMode::kExtInt:
      ++counters.ipis;
      counters.Count(mailbox_of_(target).Post(CpuMailbox::kExtInt));
      return;
    case DeliveryMode::kSmi:  // there is no system management mode here
    case DeliveryMode::kReserved3:
      ++counters.undeliverable;
      return;
  }
}

void UserIrqchip::SendVector(CpuNumber target, Vector vector, bool level, SendCounters& counters) {
  ++counters.ipis;
  counters.Count(mailbox_of_(target).PostVector(vector, level));
}

void UserIrqchip::SendInit(CpuNumber target, SendCounters& counters) {
  ++counters.inits;
  CpuMailbox& mailbox = mailbox_of_(target);
  if (DropsInit(target)) {
    ++counters.startup_dropped;
    mailbox.side_events().Add(ReadTsc(), TraceEvent::kInitDropped, 0);
    return;
  }
  bool counted;
  counters.Count(mailbox.PostInit(&counted));
}

void UserIrqchip::SendSipi(CpuNumber target, Vector vector, SendCounters& counters) {
  ++counters.sipis;
  CpuMailbox& mailbox = mailbox_of_(target);
  uint32_t index = 0;
  if (DropsSipi(target, &index)) {
    ++counters.startup_dropped;
    mailbox.side_events().Add(ReadTsc(), TraceEvent::kSipiDropped, index);
    return;
  }
  bool counted;
  counters.Count(mailbox.PostSipi(vector, &counted));
  if (counted) return;
  ++counters.sipis_ignored;
  mailbox.side_events().Add(ReadTsc(), TraceEvent::kSipiIgnored, vector.value);
}

bool UserIrqchip::DropsInit(CpuNumber target) {
  if (abi::Concerns(fault_, target.value)) faulted_sipis_.store(0, std::memory_order_relaxed);
  return abi::LosesInit(fault_, target.value);
}

bool UserIrqchip::DropsSipi(CpuNumber target, uint32_t* index) {
  if (abi::Concerns(fault_, target.value)) {
    *index = faulted_sipis_.fetch_add(1, std::memory_order_relaxed);
  }
  return abi::LosesSipi(fault_, target.value, *index);
}

}  // namespace sipi
