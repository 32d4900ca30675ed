// The process exit statuses of the `sipi` command, as docs/formats.md tells them to users. Append
// only.
#pragma once

namespace sipi {

enum class ExitCode : int {
  kOk = 0,                // every CPU that was offered is online
  kError = 1,             // an error that has no status of its own
  kUsage = 2,             // unknown flag, strategy or profile; a malformed file
  kPartial = 3,           // the run ended with CPUs missing
  kGuestFault = 4,        // triple fault, guest panic, exception, failed entry, emulation failure
  kTimeLimit = 5,         // the run's time limit ended it
  kAllHalted = 6,         // every CPU had halted for good
  kKvmMissing = 7,        // /dev/kvm does not exist
  kKvmNotPermitted = 8,   // /dev/kvm may not be opened
  kKvmNotADevice = 9,     // /dev/kvm is not KVM's device
  kKvmWrongVersion = 10,  // KVM speaks another API version than 12
  kGuestReset = 11,       // a payload reset the machine
  kSignalBase = 128,      // 128 + n: ended by signal n
};

}  // namespace sipi
