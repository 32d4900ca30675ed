// The AP's handshake with its control CPU. Values and order are Linux's (kernel/cpu.c, enum
// cpuhp_sync_state). Freestanding. The word lives in CpuSlot::sync_state; both sides assert each
// transition.
#pragma once

#include <cstdint>

namespace sipi::abi {

enum class SyncState : uint32_t {
  kDead = 0,
  kKicked = 1,        // control CPU: about to send INIT/SIPI
  kShouldDie = 2,     // control CPU: cancelled, or going down; the AP parks
  kAlive = 3,         // AP: running on its own stack
  kShouldOnline = 4,  // control CPU (or the AP itself where the strategy lets it): go on
  kOnline = 5,        // AP: STARTING section done
};

// The table of allowed transitions.
//
//   dead -> kicked -> alive -> should-online -> online -> should-die -> dead
//   kicked -> should-die                        gave up waiting; a late AP sees it, and parks
//   alive, should-online -> should-die          rolled back, before or after letting the AP go
//   kicked -> kicked, should-die -> kicked      a retry after a failed try (Linux can_boot_ap)
//   kicked -> dead                              an AP parks that was given up before that retry
//
constexpr bool SyncTransitionAllowed(SyncState from, SyncState to) {
  switch (to) {
    case SyncState::kDead:
      return from == SyncState::kShouldDie || from == SyncState::kKicked;
    case SyncState::kKicked:
      return from == SyncState::kDead || from == SyncState::kKicked ||
             from == SyncState::kShouldDie;
    case SyncState::kShouldDie:
      return from == SyncState::kKicked || from == SyncState::kAlive ||
             from == SyncState::kShouldOnline || from == SyncState::kOnline;
    case SyncState::kAlive:
      return from == SyncState::kKicked;
    case SyncState::kShouldOnline:
      return from == SyncState::kAlive;
    case SyncState::kOnline:
      return from == SyncState::kShouldOnline;
  }
  return false;
}

constexpr const char* Name(SyncState state) {
  switch (state) {
    case SyncState::kDead:
      return "dead";
    case SyncState::kKicked:
      return "kicked";
    case SyncState::kShouldDie:
      return "should-die";
    case SyncState::kAlive:
      return "alive";
    case SyncState::kShouldOnline:
      return "should-online";
    case SyncState::kOnline:
      return "online";
  }
  return "?";
}

}  // namespace sipi::abi
