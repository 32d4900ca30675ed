// One virtual machine: KVM's objects, the vCPUs with their threads, the devices, and a clean end.
// Knows nothing of guest.elf: RunMachine (run.h) loads that, tests load a few bytes of their own.
//
//   Create -> SetMemory, SetBootState [, SetSequence] -> Run -> queries -> destruction
//
// Create starts to make the APs' vCPUs in the background; Run starts the boot CPU at once.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "vmm/board/board.h"
#include "vmm/board/user_lines.h"
#include "vmm/cpu/cpuid.h"
#include "vmm/cpu/topology.h"
#include "vmm/device/output_stage.h"
#include "vmm/device/port_bus.h"
#include "vmm/irqchip/cpu_mailbox.h"
#include "vmm/kvm/kvm.h"
#include "vmm/kvm/vm.h"
#include "vmm/machine/end_latch.h"
#include "vmm/machine/run.h"
#include "vmm/machine/run_config.h"
#include "vmm/machine/vcpu_factory.h"
#include "vmm/memory/guest_memory.h"
#include "vmm/sequencer/host_sequencer.h"
#include "vmm/timeline/collect.h"
#include "vmm/timeline/host_log.h"
#include "vmm/vcpu/vcpu_thread.h"
#include "vmm/vcpu/vcpu_world.h"

namespace sipi {

// The PC around the CPUs, for payloads.
struct BoardOptions {
  uint64_t ram_bytes = 0;  // as fw_cfg tells the guest
};

struct MachineOptions {
  Topology topology = FlatTopology(1);
  IrqchipKind irqchip = IrqchipKind::kUser;
  abi::ApicMode apic_mode = abi::ApicMode::kX2Apic;
  HiddenFeatures hidden;
  abi::Driver driver = abi::Driver::kGuest;
  Profile profile;
  abi::FaultSpec fault;
  std::vector<uint32_t> firmware_lies;
  uint64_t seed = 1;
  int serial_fd = -1;
  std::string kvm_device = "/dev/kvm";
  std::optional<BoardOptions> board;
  bool kvm_icr = false;  // RunConfig::kvm_icr
  // How often an AP may be started, for the sizes of what is kept of each start.
  uint32_t startups_per_cpu = 1;

  // Tests only.
  std::shared_ptr<const IoctlHook> ioctl_hook;         // makes an ioctl fail
  size_t serial_buffer_bytes = 1 << 20;                // of the serial output to a slow reader
  bool firmware_present = false;                       // there is code at F000:FFF0
  std::function<uint64_t(CpuNumber)> thread_delay_ns;  // holds a CPU's thread back
};

class Machine final : private VcpuEvents {
 public:
  // Checks the host's limits, makes the VM and CPU 0, and starts to make the others. Errors name
  // ioctl, file or limit, and the remedy.
  static absl::StatusOr<std::unique_ptr<Machine>> Create(MachineOptions options);
  ~Machine() override;

  uint32_t cpus() const { return options_.topology.cpu_count(); }
  ApicId apic_id(CpuNumber cpu) const { return options_.topology.places[cpu.value].apic_id; }
  uint32_t tsc_khz() const { return world_.tsc_khz; }
  TscClock clock() const { return {world_.tsc_khz, world_.tsc_offset}; }
  Vm& vm() { return *vm_; }
  // What the VM's main thread logs; the caller of Run owns it.
  HostLog& log() { return log_; }

  // Takes over the guest's RAM and registers it.
  absl::Status SetMemory(GuestMemory memory);
  const GuestMemory& memory() const { return *memory_; }

  // The boot CPU's first state: `change` gets the state after reset (F000:FFF0, real mode).
  absl::Status SetBootState(const std::function<void(kvm_regs&, kvm_sregs&)>& change);

  // With a board: puts the firmware to its two places, and says what its call does: `load` gets the
  // memory and a function that takes the entry state of the boot CPU. After SetMemory.
  using LoadFn = std::function<absl::Status(const GuestMemory&, const EnterState&)>;
  absl::Status SetFirmware(LoadFn load);

  // Host-driven bring-up: what to do once the guest rings Doorbell::kReady.
  void SetSequence(HostSequence sequence);

  // Lets the guest run until it ends, for whatever reason; then stops and joins every thread. Once.
  RunEnd Run(StopRequest& stop, int64_t time_limit_ms);

  // --- After Run.
  // What a CPU was doing at the end; some microseconds each.
  std::string Doing(CpuNumber cpu);
  std::map<std::string, uint64_t> Counters() const;
  // Emulated instructions of a CPU by KVM's statistics; 0 where it has none.
  uint64_t Instructions(CpuNumber cpu) const;
  // Every host log there is; they live as long as the machine.
  std::vector<HostTrack> Tracks();
  uint64_t lost_side_events() const;
  const OutputSummary& serial_summary() const { return serial_summary_; }
  // Tests: a CPU's thread with its vCPU, before and after Run and on that thread itself. The
  // factory must have made it.
  VcpuThread& thread(CpuNumber cpu) { return *threads_[cpu.value]; }

 private:
  explicit Machine(MachineOptions options);

  // Construction, in this order (machine.cc).
  absl::Status CheckLimits();
  absl::Status CreateVm();
  absl::Status SetUpIrqchip();
  absl::Status EnableX2ApicApi(std::span<const ApicId> ids);
  absl::Status SetUpBoard();  // machine_board.cc, as the next two
  std::unique_ptr<UserLines> MakeUserLines();
  void UpdateMsiRoutes();
  absl::Status CreateBootCpu();
  void SetUpFactory();
  absl::Status MakeAp(CpuNumber cpu);
  absl::StatusOr<Vcpu> CreateVcpu(CpuNumber cpu);
  std::unique_ptr<VcpuThread> NewThread(CpuNumber cpu, size_t log_records);

  // VcpuEvents, on vCPU threads (machine_events.cc).
  void OnGuestExit(CpuNumber cpu, uint32_t value) override;
  void OnFault(CpuNumber cpu, std::string diagnosis) override;
  void OnDoorbell(CpuNumber cpu, abi::Doorbell bell) override;
  void OnAllIdle() override;
  void OnInitLine(CpuNumber cpu) override;
  void OnSystemReset(CpuNumber cpu, uint32_t port) override;
  absl::Status OnFirmware(const EnterState& enter) override;
  void OnFlushPage(Gpa page) override;

  // The run (machine_run.cc).
  absl::Status Launch();
  void WaitForEnd(StopRequest& stop, int64_t time_limit_ms);
  void StopEverything();
  void StartSequencer();
  // On the boot CPU's thread: waits until an IPI can reach every vCPU. False: the run ends before.
  bool WaitUntilReachable();
  static void* SequencerMain(void* self);
  void CheckAllIdle();
  bool TimerMayInterrupt() const;

  MachineOptions options_;
  std::optional<Kvm> kvm_;
  std::optional<GuestMemory> memory_;  // outlives the VM and its vCPUs, as does the next
  std::optional<GuestMemory> firmware_;
  std::optional<Vm> vm_;
  std::optional<CpuidTemplate> cpuid_;
  std::deque<CpuMailbox> mailboxes_;
  std::unique_ptr<OutputStage> serial_output_;
  std::unique_ptr<Serial16550> serial_;
  std::unique_ptr<Board> board_;     // payloads only, as the next ones
  UserLines* user_lines_ = nullptr;  // irqchips user and split; board_'s
  LoadFn load_;
  SendCounters board_sends_;  // under the mutex of user_lines_
  std::mutex init_line_mutex_;
  SendCounters init_line_sends_;  // under init_line_mutex_
  std::unique_ptr<PortBus> ports_;
  std::unique_ptr<UserIrqchip> chip_;   // irqchip user
  std::unique_ptr<IdleLedger> ledger_;  // irqchip user
  VcpuWorld world_;
  EndLatch end_;
  HostLog log_;
  std::vector<std::unique_ptr<VcpuThread>> threads_;  // [cpu]; made by the factory
  std::unique_ptr<VcpuFactory> factory_;

  std::unique_ptr<StartupSender> sender_;
  HostLog sequencer_log_;
  std::unique_ptr<HostSequencer> sequencer_;
  std::mutex sequencer_mutex_;  // guards the next three
  bool sequencer_started_ = false;
  bool stopping_ = false;
  pthread_t sequencer_thread_ = {};
  std::atomic<bool> sequencer_active_{false};

  OutputSummary serial_summary_;
  std::vector<std::unique_ptr<HostLog>> side_logs_;
};

}  // namespace sipi
