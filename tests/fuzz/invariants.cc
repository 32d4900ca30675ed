#include "tests/fuzz/invariants.h"

#include <array>

namespace sipi::apic::fuzz {
namespace {

// Highest vector in the eight registers from `first` on; -1 if none.
int HighestBit(const RegisterPage& page, Reg first) {
  for (uint32_t i = 8; i-- > 0;) {
    const uint32_t word = page.Get(static_cast<uint32_t>(first) + i * 16);
    for (int bit = 31; bit >= 0; --bit) {
      if ((word >> bit & 1) != 0) return static_cast<int>(i) * 32 + bit;
    }
  }
  return -1;
}

// The bits that may read as 1, from the figures of SDM vol 3A, chapter 11.
struct DefinedBits {
  Reg reg;
  uint32_t bits;
};
constexpr std::array<DefinedBits, 18> kDefined = {{
    {Reg::kTpr, 0xff},            // figure 11-18
    {Reg::kPpr, 0xff},            // figure 11-19
    {Reg::kEsr, 0xf0},            // figure 11-9, without the bus errors of the P6 family
    {Reg::kIcrLow, 0xccfff},      // figure 11-12; delivery status reads idle
    {Reg::kLvtCmci, 0x107ff},     // figure 11-8; delivery status reads idle in all of them
    {Reg::kLvtTimer, 0x700ff},    //
    {Reg::kLvtThermal, 0x107ff},  //
    {Reg::kLvtPerf, 0x107ff},     //
    {Reg::kLvtLint0, 0x1e7ff},    //
    {Reg::kLvtLint1, 0x1e7ff},    //
    {Reg::kLvtError, 0x100ff},    //
    {Reg::kTimerDivide, 0xb},     // figure 11-10
    {Reg::kIrr0, 0xffff0000},     // vectors 0 to 15 never show
    {Reg::kIsr0, 0xffff0000},     //
    {Reg::kTmr0, 0xffff0000},     //
    {Reg::kApr, 0},               // not supported
    {Reg::kRrd, 0},               //
    {Reg::kEoi, 0},               // write-only
}};

void CheckPriorities(const LocalApic& apic, const RegisterPage& page, Finding& finding) {
  const int isrv = HighestBit(page, Reg::kIsr0);
  const int irrv = HighestBit(page, Reg::kIrr0);
  const uint32_t tpr = page.Get(Reg::kTpr);
  const uint32_t isr_class = isrv < 0 ? 0 : static_cast<uint32_t>(isrv) & 0xf0;
  const uint32_t ppr = (tpr & 0xf0) >= isr_class ? tpr : isr_class;
  finding.Check(page.Get(Reg::kPpr) == ppr, "PPR is not 11.8.3.1's");
  const bool deliverable = apic.mode() != ApicMode::kDisabled && irrv >= 0 &&
                           (static_cast<uint32_t>(irrv) & 0xf0) > (ppr & 0xf0);
  const std::optional<Vector> next = apic.HighestDeliverable();
  finding.Check(next.has_value() == deliverable, "something else is deliverable than IRR says");
  finding.Check(!next || next->value == irrv, "not the highest of IRR is delivered");
}

}  // namespace

void CheckRegisters(LocalApic apic, const ApicConfig& config, Time now, Finding& finding) {
  const RegisterPage page = apic.ToPage(now);
  for (const auto& [reg, bits] : kDefined) {
    finding.Check((page.Get(reg) & ~bits) == 0, "a reserved bit reads as 1");
  }
  const uint32_t svr = config.has_directed_eoi ? 0x13ffu : 0x3ffu;
  finding.Check((page.Get(Reg::kSvr) & ~svr) == 0, "a reserved bit of SVR reads as 1");
  finding.Check((page.Get(Reg::kDfr) & kDfrFixedOnes) == kDfrFixedOnes, "DFR 27:0 are not ones");
  if (apic.mode() == ApicMode::kX2Apic) {
    finding.Check(page.Get(Reg::kLdr) == X2ApicLogicalId(apic.id()), "LDR is not 11.12.10.2's");
  } else {
    finding.Check((page.Get(Reg::kLdr) & 0xffffff) == 0, "LDR 23:0 are not 0");
  }
  if (!apic.software_enabled()) {
    for (size_t i = config.has_cmci ? 0 : 1; i < kLvtEntryCount; ++i) {
      const uint32_t lvt = page.Get(LvtReg(static_cast<LvtEntry>(i)));
      finding.Check((lvt & kLvtMasked) != 0, "software-disabled, but an LVT entry is not masked");
    }
  }
  const uint64_t base = apic.ReadApicBase();
  finding.Check((base & kApicBaseEnable) != 0 || (base & kApicBaseX2Apic) == 0,
                "IA32_APIC_BASE is in the invalid state");
  CheckPriorities(apic, page, finding);

  LocalApic copy(apic.id(), apic.bsp(), config);
  copy.Reset(apic.bsp(), apic.mode());
  copy.FromPage(page, now);
  RegisterPage restored = copy.ToPage(now);
  restored.Set(Reg::kId, page.Get(Reg::kId));  // the one register that a page does not bring along
  finding.Check(restored == page, "the page does not restore to itself");
}

void CheckXApicId(LocalApic apic, std::optional<uint8_t> written_id, Time now, Finding& finding) {
  if (apic.mode() != ApicMode::kXApic) return;
  const uint8_t id = written_id.value_or(static_cast<uint8_t>(apic.id().value));
  finding.Check(apic.ReadMmio(static_cast<uint32_t>(Reg::kId), now) == uint32_t{id} << 24,
                "the xAPIC ID is neither the written one nor the CPU's own");
}

void CheckTimer(const LocalApic& apic, Time now, std::optional<uint64_t> known_deadline_ns,
                Finding& finding) {
  const std::optional<uint64_t> deadline = apic.NextDeadlineNs(now);
  if (!deadline) {
    finding.Check(!known_deadline_ns, "the deadline went away and no effect said so");
    return;
  }
  finding.Check(*deadline > now.ns, "an expiry is overdue");
  finding.Check(known_deadline_ns && *known_deadline_ns <= *deadline,
                "the deadline moved and no effect said so");
  // Beyond the bounds of Time (apic_timer.h) there is nothing to try.
  if (*deadline >= uint64_t{1} << 59) return;
  const auto at = [&](uint64_t ns) { return Time{.ns = ns, .tsc = now.tsc + (ns - now.ns) * 3}; };
  const uint64_t before = apic.counters().timer_expired;
  LocalApic early = apic;
  (void)early.Advance(at(*deadline - 1));
  finding.Check(early.counters().timer_expired == before, "the timer fired early");
  LocalApic in_time = apic;
  (void)in_time.Advance(at(*deadline));
  finding.Check(in_time.counters().timer_expired > before, "the timer missed its deadline");
}

void CheckStartupWord(StartupWord word, Finding& finding) {
  constexpr uint64_t kKnown = StartupWord::kInitPending | StartupWord::kSipiBits |
                              StartupWord::kWaitForSipi | StartupWord::kBsp;
  finding.Check((word.bits & ~kKnown) == 0, "the mailbox has a bit that nobody sets");
  finding.Check(word.Has(StartupWord::kSipiPending) || word.SipiVector().value == 0,
                "a vector without a SIPI");
  finding.Check(!word.Has(StartupWord::kSipiPending) || word.Has(StartupWord::kInitPending) ||
                    word.Has(StartupWord::kWaitForSipi),
                "a SIPI is pending that does not count");
}

void CheckPost(StartupWord before, StartupWord after, bool counted, Finding& finding) {
  constexpr uint64_t kTargets = StartupWord::kWaitForSipi | StartupWord::kBsp;
  finding.Check((before.bits & kTargets) == (after.bits & kTargets),
                "a sender changed the target's own state");
  finding.Check(counted == (before != after), "a post does not tell whether it counted");
  finding.Check(!before.Has(StartupWord::kInitPending) || after.Has(StartupWord::kInitPending),
                "a post took an INIT away");
}

void CheckTake(StartupWord before, StartupWord after, const StartupAction& action,
               Finding& finding) {
  using Kind = StartupAction::Kind;
  finding.Check(!after.Has(StartupWord::kInitPending | StartupWord::kSipiPending),
                "the target left something behind");
  finding.Check(before.Has(StartupWord::kBsp) == after.Has(StartupWord::kBsp),
                "Take changed the BSP flag");
  const bool init = action.kind == Kind::kInit || action.kind == Kind::kInitThenStart;
  const bool start = action.kind == Kind::kStart || action.kind == Kind::kInitThenStart;
  finding.Check(init == before.Has(StartupWord::kInitPending), "an INIT got lost or came twice");
  finding.Check(!start || action.vector == before.SipiVector(), "started at another vector");
  if (start) finding.Check(!after.Has(StartupWord::kWaitForSipi), "started, and waits");
  if (action.kind == Kind::kInit) {
    finding.Check(after.Has(StartupWord::kWaitForSipi) != after.Has(StartupWord::kBsp),
                  "after INIT a BSP runs and any other CPU waits");
  }
}

}  // namespace sipi::apic::fuzz
