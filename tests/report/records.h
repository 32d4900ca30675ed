// Runs made by hand, with times that a test can add up in its head.
#pragma once

#include <cstdint>

#include "vmm/timeline/run_record.h"

namespace sipi {

// Builds a record event by event. Times are in microseconds and must not go back.
class RecordBuilder {
 public:
  explicit RecordBuilder(uint32_t cpus);
  RecordBuilder& At(int64_t t_us, int32_t cpu, abi::TraceEvent name, uint16_t target = 0,
                    uint32_t value = 0);
  RecordBuilder& Enter(int64_t t_us, int32_t by, uint16_t target, abi::CpuhpState state) {
    return At(t_us, by, abi::TraceEvent::kCpuhpEnter, target, static_cast<uint32_t>(state));
  }
  // Marks `cpu` online in the list of CPUs.
  RecordBuilder& Online(uint32_t cpu);
  RunRecord& record() { return record_; }
  RunRecord Take();

 private:
  RunRecord record_;
};

// Three CPUs, serial: CPU 1 from 100 us on, CPU 2 from 500 us on, the same steps with the same
// lengths; smpboot from 90 to 910 us. Per AP, from its begin: kick 10 to 50, SIPI sent at 20, taken
// at 25, first instruction 100, alive 150, wait-alive 60 to 160, released 170, ap:offline 170,
// ap:online-idle 250, online 400.
RunRecord SerialRun();

// Four CPUs, broadcast: one kick from 10 to 30 us, SIPIs taken at 22 (CPU 1), 24, 26; alive at 100,
// 120, 140; released at once; ap:online-idle at 200, 220, 240; online at 300, 320, 340; smpboot
// from 0 to 350 us. Begins with kBootEntry.
RunRecord BroadcastRun();

// As SerialRun, but CPU 2 is kicked and never heard of: given up at 10,000 us.
RunRecord PartialRun();

}  // namespace sipi
