// A machine of up to eight CPUs, made of nothing but the APIC model, that a fuzzer's bytes drive:
// two bytes say what it is like, then each operation is a byte, a CPU and operands. What a caller
// of the model has to do, it does (apic/model/effect.h), and nothing more; so a missing effect
// shows as a routing word or a deadline that is out of date.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "apic/model/init_sipi.h"
#include "apic/model/local_apic.h"
#include "apic/model/router.h"
#include "tests/fuzz/byte_reader.h"
#include "tests/fuzz/finding.h"
#include "tests/fuzz/reference_routing.h"

namespace sipi::apic::fuzz {

// The first byte of each operation, modulo their number. tests/fuzz/make_corpus.py has them too.
enum class Operation : uint8_t {
  kStoreMmio,    // offset 16, bytes 8, value 64
  kLoadMmio,     // offset 16, bytes 8
  kWriteMsr,     // index 8 (from 800H), value 64
  kReadMsr,      // index 8
  kApicBase,     // bits 16: IA32_APIC_BASE 11:0, then 15:12 for 47:44
  kTscDeadline,  // cycles from now 32, signed; 0 disarms
  kTime,         // nanoseconds 32
  kDevice,       // ICR low 32 (bit 15: level-triggered), destination 8
  kLocal,        // LVT entry 8
  kTake,         // the CPU takes an interrupt, if any is deliverable or bit 0 of a byte says so
  kEoi,          //
  kIpi,          // ICR low 32, destination 32; by the register that the mode has
  kPost,         // 8: bit 0 INIT, bit 1 SIPI at the vector of the next byte
  kStartup,      // the CPU looks at its mailbox
  kCr8,          // 8
  kRestore,  // a register page is saved, four bytes of it change (offset 16, value 32), restored
  kCount,
};

class Machine {
 public:
  // What the first two bytes say. `finding` outlives the machine.
  Machine(ByteReader& input, Finding& finding);

  // One operation, then every rule that it may have broken.
  void Step(int step, ByteReader& input);

 private:
  struct Cpu {
    Cpu(ApicId id, bool bsp, const ApicConfig& config) : apic(id, bsp, config), startup(bsp) {}
    LocalApic apic;
    StartupMailbox startup;
    std::optional<uint64_t> deadline_ns;  // as a VMM remembers it
    std::optional<uint8_t> written_id;    // what software has made of the xAPIC ID
  };

  void Do(Operation operation, uint32_t cpu, ByteReader& input);
  void StoreMmio(uint32_t cpu, ByteReader& input);
  void WriteMsr(uint32_t cpu, uint32_t msr, uint64_t value);
  void ReadMsr(uint32_t cpu, uint32_t msr);
  void WriteApicBase(uint32_t cpu, uint16_t bits);
  void PassTime(uint32_t ns);
  void SendFromDevice(ByteReader& input);
  void RaiseLocal(uint32_t cpu, uint8_t entry);
  void TakeInterrupt(uint32_t cpu, bool even_if_none);
  void EndOfInterrupt(uint32_t cpu);
  void SendIpi(uint32_t cpu, uint32_t low, uint32_t dest);
  void Post(uint32_t cpu, uint8_t what, Vector vector);
  void TakeStartup(uint32_t cpu);
  void Restore(uint32_t cpu, ByteReader& input);

  void Apply(uint32_t cpu, const WriteEffect& effect);
  void Route(uint32_t sender, const Icr& icr);
  void Deliver(uint32_t target, const Icr& icr, bool level);
  void Publish(uint32_t cpu);
  void RefreshTimer(uint32_t cpu);
  void CheckEverything();
  LocalApic& Apic(uint32_t cpu) { return cpus_[cpu]->apic; }
  bool MustReach(uint32_t cpu, const Icr& icr, const LocalApic* sender) {
    return Reaches(icr, sender, Apic(cpu), cpus_[cpu]->written_id);
  }

  Finding& finding_;
  ApicConfig config_;
  std::vector<std::unique_ptr<Cpu>> cpus_;
  std::optional<RoutingTable> table_;
  Time now_{.ns = 1000, .tsc = 3000};
};

}  // namespace sipi::apic::fuzz
