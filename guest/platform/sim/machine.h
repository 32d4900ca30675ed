// One simulated machine: virtual time, the queue of what is to come, CPUs, and the interrupt fabric
// between them. One thread of the host runs it; nothing of it is shared with another machine.
//
// A CPU's fiber runs ahead of the machine's time by what its instructions cost (Spend), and comes
// back to it (Sync) before anything that another CPU can see or cause: then every event up to that
// time has happened. Where nothing is due in between, Sync costs a few comparisons and no switch.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "apic/model/router.h"
#include "guest/kernel/kernel.h"
#include "guest/platform/sim/event_queue.h"
#include "guest/platform/sim/shared_memory.h"
#include "guest/platform/sim/simulator.h"
#include "guest/platform/sim/trampoline.h"

namespace sipi::sim {

// What the CPUs run; the guest kernel (kernel_program.h), or a test's own few lines. Each runs on
// its CPU's fiber, with interrupts off; the first two never return.
struct Program {
  void (*boot)(Cpu& cpu);
  void (*ap)(Cpu& cpu, Vector startup);
  void (*interrupt)(Cpu& cpu, Vector vector);  // must end with an EOI
  // After interrupts, at the end of the call in which they were taken: may switch to another stack.
  // Null: no threads.
  void (*preempt)() = nullptr;
};

// What a machine borrows from the host. Another one can have it afterwards.
struct Backing {
  Memory memory;
  StackPool stacks;
};

class Machine {
 public:
  Machine(Options options, const Program& program, std::unique_ptr<Backing> backing = nullptr);
  std::unique_ptr<Backing> TakeBacking() { return std::move(backing_); }
  // Asks the host for the memory. False, with `error` naming limit and remedy.
  bool Reserve(std::string* error);
  End Run();

  // --- Anywhere.
  const Options& options() const { return options_; }
  const Costs& costs() const { return options_.costs; }
  uint32_t size() const { return static_cast<uint32_t>(cpus_.size()); }
  Cpu& cpu(uint32_t number) { return cpus_[number]; }
  Memory& memory() { return backing_->memory; }
  Kernel& kernel() { return *reinterpret_cast<Kernel*>(memory().base() + abi::kImageGpa); }
  Trampoline& trampoline() { return trampoline_; }
  Stats& stats() { return stats_; }
  const std::vector<HostRecord>& host_records() const { return host_records_; }
  const std::vector<ChoicePoint>& choice_points() const { return choice_points_; }
  uint64_t now_ns() const { return now_ns_; }
  uint64_t TicksOf(uint64_t ns) const;
  uint64_t NsOf(uint64_t ticks) const;  // rounded up
  uint64_t CpuTicks(const Cpu& cpu) const {
    return TicksOf(cpu.now_ns) + static_cast<uint64_t>(cpu.place.tsc_offset_ticks);
  }
  apic::Time ApicTime(const Cpu& cpu) const { return {cpu.now_ns, CpuTicks(cpu)}; }
  const abi::BootParams& params() {
    return *reinterpret_cast<const abi::BootParams*>(memory().base() + abi::kParamsGpa);
  }
  std::string Doing(uint32_t number) const;
  uint32_t ticks_per_ms = 0;  // platform::SetTicksPerMs

  // --- On a CPU's fiber, by that CPU (machine.cc, blocking.cc).
  void Spend(Cpu& cpu, uint64_t ns) { cpu.now_ns += ns; }
  void Sync(Cpu& cpu);
  // An atomic access: pays for the line, and returns when it is the machine's time for it.
  void Access(Cpu& cpu, const void* word, bool write);
  // The word has changed: CPUs that spin on it look again.
  void Stored(Cpu& cpu, const void* word);
  // Spins until the word is stored to, the deadline, or an interrupt. The CPU has just looked at
  // it. `slice_ns`, if not 0: it lets others run after each slice.
  WakeReason Spin(Cpu& cpu, const void* word, uint64_t deadline_ns, uint64_t slice_ns);
  // False: it was interrupted before that time.
  bool DelayUntil(Cpu& cpu, uint64_t time_ns);
  // Enables interrupts, waits for one, and has them disabled again.
  void Halt(Cpu& cpu);
  [[noreturn]] void Park(Cpu& cpu);
  [[noreturn]] void Hang(Cpu& cpu);
  void Impose(Cpu& cpu, abi::Charge kind);
  void Relax(Cpu& cpu);
  void EnableInterrupts(Cpu& cpu);
  [[noreturn]] void Finish(Cpu& cpu, End end);
  // What the IDT's stubs do with an exception: fill the result page and end the machine.
  [[noreturn]] void Exception(Cpu& cpu, uint32_t vector);
  // A CPU that spins for the trampoline's lock gets it.
  void WaitForTrampoline(Cpu& cpu);
  void GrantTrampoline(Cpu& cpu, uint64_t time_ns) { Wake(cpu, time_ns, WakeReason::kLock); }
  // Threads (context.cc). A stack of the pool for one of them; the machine ends where there is
  // none.
  std::byte* NewThreadStack(Cpu& cpu);
  void Preempt() const {
    if (program_.preempt != nullptr) program_.preempt();
  }
  Random& random() { return random_; }
  std::vector<Cpu*>& scratch() { return scratch_; }  // valid until the next Sync

  // --- The local APIC, on its CPU's fiber (fabric.cc).
  uint32_t ReadApic(Cpu& cpu, apic::Reg reg);
  void WriteApic(Cpu& cpu, apic::Reg reg, uint32_t value);
  void WriteIcr(Cpu& cpu, uint32_t low, uint32_t dest);
  void WriteTscDeadline(Cpu& cpu, uint64_t ticks);
  void WriteApicBase(Cpu& cpu, uint64_t value);  // IA32_APIC_BASE; the guest kernel leaves it alone

  // --- Exploration (chaos.cc). Does nothing unless Options::chaos.on.
  // Something happened that must not: the machine ends.
  void Violation(std::string text);
  // The CPU has taken a per-CPU area, and with it a stack.
  void CheckStack(const Cpu& cpu);
  // A word is about to change: is it a handshake, and may it?
  void CheckStore(const void* word, uint64_t value);
  // The CPU is about to trace this: it may die here, or freeze.
  void MayDie(Cpu& cpu, uint32_t event_and_target, uint32_t value);
  // The CPU has traced this: does a marked part begin or end (choices.cc), do the faults end?
  void TakeMark(uint32_t event_and_target, uint32_t value);
  // True: the store stands in the CPU's buffer.
  bool Buffer(Cpu& cpu, void* word, uint32_t bytes, uint64_t value, bool fenced);
  void DrainStores(Cpu& cpu, size_t leave);
  bool chaotic() const { return options_.chaos.on; }
  bool settled() const { return settled_; }

  void Record(int32_t cpu, uint64_t ns, abi::TraceEvent event, uint32_t value = 0);
  // The CPU's ring is full: keeps the record, as long as there are spare ones.
  void Spare(Cpu& cpu, const abi::TraceRecord& record);

 private:
  struct Message {
    uint32_t target = 0;
    apic::DeliveryMode mode = apic::DeliveryMode::kFixed;
    Vector vector;
  };
  static constexpr uint64_t kNever = EventQueue::kNever;

  // The queue's slots.
  uint32_t ResumeSlot(const Cpu& cpu) const { return cpu.number; }
  uint32_t TimerSlot(const Cpu& cpu) const { return size() + cpu.number; }
  uint32_t SliceSlot(const Cpu& cpu) const { return 2 * size() + cpu.number; }
  uint32_t FirstMessageSlot() const { return 3 * size(); }

  // machine.cc
  void PowerOn();
  void Dispatch(uint32_t slot);
  void DecideEnd();
  void OnResume(Cpu& cpu);
  void RunFiber(Cpu& cpu);
  void Launch(Cpu& cpu);
  static void FiberMain(void* cpu);

  // blocking.cc
  WakeReason Block(Cpu& cpu, CpuState state, uint64_t until_ns);
  void Wake(Cpu& cpu, uint64_t time_ns, WakeReason reason);
  void Unlink(Cpu& cpu);
  void ComeBack(Cpu& cpu);
  uint64_t Transfer(Cpu& cpu, Line& line);
  bool TakeInterrupts(Cpu& cpu);

  // host_cores.cc
  bool limited() const { return options_.host_cores != 0; }
  void WantCore(Cpu& cpu);
  void KeepOrLeaveCore(Cpu& cpu, CpuState state);
  void LeaveCore(Cpu& cpu);
  void ForgetCore(Cpu& cpu);
  void FillCores();
  void OnSlice(Cpu& cpu);
  bool SliceIsOver(const Cpu& cpu) const {
    return cpu.now_ns >= cpu.slice_end_ns && !core_queue_.empty();
  }
  void GiveUpCore(Cpu& cpu);

  // steal.cc
  bool stealing() const { return options_.steal.period_ns != 0; }
  void PowerOnSteal();
  void LoseCore(Cpu& cpu, bool waited);

  // choices.cc
  bool chosen() const { return chaotic() && options_.chaos.schedule == Schedule::kChosen; }
  bool by_turns() const { return chosen() || by_priority(); }
  uint32_t Choose(ChoicePoint point);
  bool Concerned(const void* word) const;
  void RunNext(Cpu& next);
  void BecomeReady(Cpu& cpu);
  void MakeReady(Cpu& cpu);
  void EndVainWait();
  void PassTurn(const Cpu& cpu);
  void LoseTurn(Cpu& cpu);
  void StandBack(Cpu& cpu);
  bool SomethingIsDue() const;
  bool TurnIsLong();
  void MayStandBack(Cpu& cpu);

  // pct.cc
  bool by_priority() const { return chaotic() && options_.chaos.schedule == Schedule::kPct; }
  void PowerOnPct();
  size_t HighestReady() const;
  void FollowPriorities(Cpu& cpu);

  // fabric.cc
  void Apply(Cpu& cpu, const apic::WriteEffect& effect);
  void Send(Cpu& sender, const apic::Icr& icr);
  void Post(Cpu& sender, uint32_t target, const apic::Icr& icr);
  void Enqueue(const Message& message, uint64_t arrival_ns);
  bool DropsInit(uint32_t target);
  bool DropsSipi(uint32_t target, uint32_t* index);
  void OnMessage(uint32_t slot);
  void OnTimer(Cpu& cpu);
  void RefreshTimer(Cpu& cpu);
  void Attention(Cpu& cpu);
  void Publish(const Cpu& cpu) { routing_.Publish(CpuNumber(cpu.number), cpu.apic.Routing()); }

  // startup.cc
  void HoldCpu(Cpu& cpu, uint64_t until_ns);
  void TakeStartup(Cpu& cpu);
  void TakeInit(Cpu& cpu);
  void BeginStart(Cpu& cpu);
  void BeginStartLatency(Cpu& cpu);
  void LatencyIsOver(Cpu& cpu);
  bool Delay(Cpu& cpu, LatencyPhase phase, uint64_t ns);
  uint64_t Draw(Cpu& cpu, const Latency& latency);

  // chaos.cc
  void PowerOnChaos();
  void Perturb(Cpu& cpu);
  void MayLinger(Cpu& cpu, const void* touched);
  void Freeze(Cpu& cpu);
  void StandStill(Cpu& cpu, uint64_t ns);
  bool Strikes(Rate rate);
  void CheckStart(Cpu& cpu);
  void CheckCall(const Cpu& sender, uint32_t target, const apic::Icr& icr);
  void Settle();
  void MayNeedInit(const Cpu& cpu);
  bool LosesStartup(uint32_t target, apic::DeliveryMode mode);
  uint64_t ArrivalNs(Cpu& target, apic::DeliveryMode mode, uint64_t planned_ns);

  Options options_;
  const Program program_;
  std::unique_ptr<Backing> backing_;
  std::deque<Cpu> cpus_;
  EventQueue queue_;
  apic::RoutingTable routing_;
  Trampoline trampoline_;
  Random random_;
  Random chaos_random_;
  std::vector<uint64_t> change_points_;  // by steps_
  int64_t lowest_priority_ = 0;
  uint64_t steps_ = 0;
  uint32_t freezes_ = 0;  // by Chaos::frozen
  Cpu* runner_ = nullptr;
  std::vector<Cpu*> ready_;  // by number
  std::vector<ChoicePoint> choice_points_;
  bool choosing_ = false;
  bool settled_ = false;
  const void* touched_ = nullptr;  // the word that the CPU which comes to a step will access there
  uint32_t preemptions_ = 0;
  uint64_t turn_steps_ = 0;
  abi::FaultSpec fault_;
  std::vector<Message> messages_;
  std::vector<uint32_t> free_messages_;
  std::deque<uint32_t> core_queue_;
  std::vector<Cpu*> scratch_;
  uint32_t free_cores_ = 0;
  uint64_t now_ns_ = 0;
  uint64_t power_on_ns_ = 0;
  uint64_t limit_ns_ = 0;
  uint64_t checks_ = 0;
  size_t thread_stacks_ = 0;
  uint32_t faulted_sipis_ = 0;  // SIPIs to the faulted CPU since its last INIT
  bool ended_ = false;
  End end_;
  std::vector<HostRecord> host_records_;
  uint64_t spare_records_ = 0;  // of Options::spare_records, those that are used
  Stats stats_;
};

// The running CPU. On a fiber only.
inline Cpu& Current() { return *static_cast<Cpu*>(FiberOwner()); }

}  // namespace sipi::sim
