#include "vmm/sequencer/startup_sender.h"

namespace sipi {

absl::Status MailboxSender::SendInit(CpuNumber target) {
  chip_.SendInit(target, counters_);
  return absl::OkStatus();
}

absl::Status MailboxSender::SendStartup(CpuNumber target, Vector vector) {
  chip_.SendSipi(target, vector, counters_);
  return absl::OkStatus();
}

absl::Status MailboxSender::SendInterrupt(CpuNumber target, Vector vector) {
  chip_.SendVector(target, vector, /*level=*/false, counters_);
  return absl::OkStatus();
}

absl::Status MsiSender::SendInit(CpuNumber target) {
  return Send(target, apic::DeliveryMode::kInit, Vector(0));
}

absl::Status MsiSender::SendStartup(CpuNumber target, Vector vector) {
  return Send(target, apic::DeliveryMode::kStartUp, vector);
}

absl::Status MsiSender::SendInterrupt(CpuNumber target, Vector vector) {
  return Send(target, apic::DeliveryMode::kFixed, vector);
}

absl::Status MsiSender::Send(CpuNumber target, apic::DeliveryMode mode, Vector vector) {
  apic::Icr icr;
  icr.mode = mode;
  icr.vector = vector;
  icr.dest = ids_[target.value].value;
  // That nobody took it is the guest's affair (an interrupt to an APIC that is still disabled).
  return vm_.SignalMsi(icr).status();
}

}  // namespace sipi
