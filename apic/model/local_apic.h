// One CPU's local APIC, in xAPIC and x2APIC mode: registers, priorities, acceptance, timer.
//
// Source: SDM vol 3A, chapter 11 "Advanced Programmable Interrupt Controller" (chapter 10 before
// 2022); the section is named at each function. Values in, values out: no other CPU, no thread, no
// clock. The owner thread alone may call it. A write returns what the caller must do (effect.h);
// what other CPUs need to know of it is Routing() (router.h); INIT and SIPI arrive by way of
// init_sipi.h.
//
// Where the SDM leaves a choice:
// - A hardware-disabled APIC (EN = 0) loses its state, as 11.4.3 allows; its LINT pins act as INTR
//   and NMI.
// - The xAPIC ID is read-only, as on processors since Nehalem, and writes are ignored, unless
//   ApicConfig says otherwise (11.4.6: model-specific). A changed one survives INIT and ends with
//   power-up and with EN = 0.
// - Lowest-priority IPIs can be sent unless ApicConfig says otherwise (model-specific, 11.6.1).
// - Suppression of EOI broadcasts is off unless ApicConfig offers it.
// - An illegal vector in an LVT entry is an error when it delivers, not when it is written (11.5.2:
//   then it "may" be one).
// - PPR's sub-class is TPR's where the two classes are equal (11.8.3.1: TPR's or 0).
// - Remote IRR of LINT0 goes with the EOI of the vector that set it, also where software has since
//   changed the entry's vector, or an IPI has brought the same vector.
// - A level-triggered source on LINT0 that is still asserted after the EOI is raised again by the
//   caller; the LVT's polarity bit is the board's affair and kept for software only.
// - APR and RRD read 0, without an error (table 11-1, note: not supported since the Pentium 4); so
//   delivery mode 3, remote read, is reserved in the ICR.
// - A message is delivered when it is sent, so that every delivery status reads idle.
// - A fixed IPI with an illegal vector goes out and its receivers refuse it: both log the error.
// - Interrupts pending when the APIC is software-disabled stay deliverable (11.4.7.2: they "are
//   held and require masking or handling by the CPU"); new ones are refused.
// - SVR bit 9 (focus checking) can be written and does nothing (11.9: not supported since Xeon).
// Not modelled: the APIC bus and what only it has (arbitration, checksum and accept errors, focus
// processor, remote read), the 82489DX, power states that stop the timer, extended LVT entries
// (AMD), IPI virtualization.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "apic/model/apic_timer.h"
#include "apic/model/counters.h"
#include "apic/model/effect.h"
#include "apic/model/register_page.h"
#include "apic/model/routing_state.h"
#include "apic/model/time.h"
#include "apic/model/vector_bitmap.h"
#include "apic/regs/apic_base.h"
#include "apic/regs/lvt.h"
#include "apic/regs/registers.h"
#include "apic/regs/types.h"

namespace sipi::apic {

// What the CPU that the APIC sits in is like. Must agree with the guest's CPUID.
struct ApicConfig {
  uint64_t bus_hz = 1'000'000'000;  // timer input clock; KVM's default of 1 ns per tick
  uint64_t tsc_hz = 1'000'000'000;
  uint32_t phys_addr_bits = 46;  // CPUID 80000008H EAX[7:0]
  bool has_x2apic = true;        // CPUID 1 ECX[21]
  bool has_tsc_deadline = true;  // CPUID 1 ECX[24]
  bool has_cmci = true;          // IA32_MCG_CAP[10]
  // Version bit 24: software may suppress EOI broadcasts (SVR bit 12). Off, because a guest that
  // does so must find an EOI register in every I/O APIC (version 20H); KVM offers it by that rule.
  bool has_directed_eoi = false;
  // Without, a lowest-priority ICR write sends nothing and logs "redirectable IPI" (11.5.3).
  bool has_lowest_priority_ipi = true;
  // Software may change the xAPIC ID: the CPU then answers to the new one, as others may too.
  bool has_writable_xapic_id = false;
};

// What RaiseLocal() did with a local interrupt.
enum class LocalDelivery : uint8_t {
  kNone,   // masked, refused, or still waiting for the EOI of a level-triggered one
  kFixed,  // in IRR
  kSmi,    // the caller delivers this and the following ones
  kNmi,
  kInit,
  kExtInt,
};

class LocalApic {
 public:
  // An APIC after power-up, in xAPIC mode.
  LocalApic(ApicId id, bool bsp, const ApicConfig& config = {});

  // Power-up (11.4.7.1). `mode` other than xAPIC stands for firmware that has switched already;
  // CPUs with an ID above 254 need kX2Apic or are unreachable by an xAPIC-mode sender.
  void Reset(bool bsp, ApicMode mode = ApicMode::kXApic);

  // INIT (11.4.7.3, 11.12.5): everything as after power-up, but the ID and IA32_APIC_BASE (mode,
  // BSP flag, address) stay. The caller publishes Routing() and cancels the host's timer.
  void Init();

  // --- Register access. `now` matters to the timer's registers only.
  ReadResult ReadMsr(uint32_t msr, Time now);  // 800H-8FFH; faults outside x2APIC mode
  WriteEffect WriteMsr(uint32_t msr, uint64_t value, Time now);
  uint32_t ReadMmio(uint32_t offset, Time now);  // 4 bytes in the page; ~0 outside xAPIC mode
  WriteEffect WriteMmio(uint32_t offset, uint32_t value, Time now);
  // The same for 1 to 8 bytes at any offset below 1000H: register_access.cc says what becomes of
  // accesses that the SDM leaves undefined.
  uint64_t LoadMmio(uint32_t offset, uint32_t bytes, Time now);
  WriteEffect StoreMmio(uint32_t offset, uint32_t bytes, uint64_t value, Time now);
  uint64_t ReadApicBase() const { return apic_base_; }
  WriteEffect WriteApicBase(uint64_t value);  // IA32_APIC_BASE, 11.12.5
  // For a hypervisor that handles the MSR itself and shows its latest value only (KVM without an
  // in-kernel APIC): takes that value, by way of "disabled" where the direct step is illegal.
  // Precondition: `value` is not in the invalid state EN = 0, EXTD = 1.
  WriteEffect AdoptApicBase(uint64_t value);
  uint64_t ReadTscDeadline(Time now);       // IA32_TSC_DEADLINE, 11.5.4.1
  ReadResult ReadTscDeadlineMsr(Time now);  // faults without TSC-deadline mode, as does the write
  WriteEffect WriteTscDeadline(uint64_t value, Time now);
  uint8_t Cr8() const { return static_cast<uint8_t>(tpr_ >> 4); }  // 11.8.6
  void SetCr8(uint8_t value) { tpr_ = static_cast<uint8_t>(value << 4); }

  // --- Interrupts.
  // A fixed or lowest-priority interrupt arrives (IPIs are always edge-triggered). True if it went
  // into IRR; false if refused, or merged with one pending.
  bool Accept(Vector vector, bool level = false);
  // The interrupt that the CPU would take now if RFLAGS.IF is set.
  std::optional<Vector> HighestDeliverable() const;
  // The CPU takes it: IRR -> ISR. Precondition: HighestDeliverable() just returned `vector`.
  void Acknowledge(Vector vector);
  // Both in one, for a CPU that has been told of an interrupt earlier and asks for its vector only
  // now (INTA): if nothing is deliverable any more, since TPR was raised in between, the answer is
  // the spurious vector, which sets no ISR bit and wants no EOI (11.9).
  Vector TakeInterrupt();
  // A local source fires. The timer and the error entry fire by themselves. ExtINT: the vector is
  // the 8259's to give.
  LocalDelivery RaiseLocal(LvtEntry entry);

  // --- Timer.
  // Lets the time-outs up to `now` happen. True if that put an interrupt into IRR.
  bool Advance(Time now);
  // When Advance() is due, on the clock of Time::ns. None if nothing unmasked is to come.
  std::optional<uint64_t> NextDeadlineNs(Time now) const;

  // --- State.
  ApicId id() const { return id_; }
  ApicMode mode() const { return ApicModeOf(apic_base_); }
  bool bsp() const { return (apic_base_ & kApicBaseBsp) != 0; }
  bool software_enabled() const { return (svr_ & kSvrEnable) != 0; }
  Vector spurious_vector() const { return Vector(static_cast<uint8_t>(svr_)); }
  uint8_t tpr() const { return tpr_; }
  uint8_t Ppr() const;  // 11.8.3.1
  uint32_t Ldr() const;
  bool Pending(Vector v) const { return irr_.Test(v); }
  bool InService(Vector v) const { return isr_.Test(v); }
  bool LevelTriggered(Vector v) const { return tmr_.Test(v); }
  uint32_t lvt(LvtEntry entry) const { return lvt_[static_cast<size_t>(entry)]; }
  RoutingState Routing() const;
  const ApicCounters& counters() const { return counters_; }

  RegisterPage ToPage(Time now);
  // Takes every register from a page except ID and version; mode and BSP flag stay.
  void FromPage(const RegisterPage& page, Time now);

 private:
  uint32_t ReadRegister(Reg reg, Time now);
  WriteEffect WriteRegister(Reg reg, uint32_t value, Time now);
  WriteEffect WriteIcr(uint32_t low, uint32_t dest);
  WriteEffect WriteSvr(uint32_t value, Time now);
  WriteEffect WriteLvt(LvtEntry entry, uint32_t value, Time now);
  WriteEffect EndOfInterrupt();
  LocalDelivery RaisePinOfDisabled(LvtEntry entry);
  void TouchRegister(uint32_t offset);
  WriteEffect ApplyApicBase(uint64_t value);
  void ResetRegisters();
  uint32_t VersionRegister() const;
  uint32_t& LvtRef(LvtEntry entry) { return lvt_[static_cast<size_t>(entry)]; }
  void StoreLvt(LvtEntry entry, uint32_t value);
  void LogError(uint32_t esr_bit);

  ApicId id_;
  std::optional<uint8_t> written_id_;  // in the place of the ID's low 8 bits, in xAPIC mode
  ApicConfig config_;
  uint64_t apic_base_ = 0;
  uint32_t svr_ = kSvrReset;
  uint32_t icr_low_ = 0;
  uint32_t icr_dest_ = 0;  // 8 bits in xAPIC mode, 32 in x2APIC mode
  uint32_t ldr_ = 0;       // xAPIC mode only
  uint32_t dfr_ = kDfrFlat;
  uint32_t esr_ = 0;             // as software reads it
  uint32_t pending_errors_ = 0;  // logged since the last write to ESR
  bool error_armed_ = true;      // no error interrupt since then
  uint8_t tpr_ = 0;
  std::array<uint32_t, kLvtEntryCount> lvt_ = {};
  Vector lint0_level_vector_;  // whose EOI clears LINT0's remote IRR, where that is set
  VectorBitmap irr_;
  VectorBitmap isr_;
  VectorBitmap tmr_;
  ApicTimer timer_;
  ApicCounters counters_;
};

}  // namespace sipi::apic
