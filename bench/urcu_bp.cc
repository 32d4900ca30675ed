// liburcu's bp flavour.
#define _LGPL_SOURCE
#include <urcu/urcu-bp.h>

#include "bench/urcu_flavours.h"
#include "bench/urcu_peer.h"

namespace sipi::bench {
namespace {

struct Flavour {
  static constexpr const char* kName = "liburcu bp";
  static void Enter() { urcu_bp_register_thread(); }
  static void Leave() { urcu_bp_unregister_thread(); }
  static void Lock() { _urcu_bp_read_lock(); }
  static void Unlock() { _urcu_bp_read_unlock(); }
  static void Quiesce() {}
  static void Call(rcu_head* head, void (*function)(rcu_head*)) {
    urcu_bp_call_rcu(head, function);
  }
  static void Barrier() { urcu_bp_barrier(); }
  static int CreateWorkers() { return urcu_bp_create_all_cpu_call_rcu_data(0); }
  static void FreeWorkers() { urcu_bp_free_all_cpu_call_rcu_data(); }
};

}  // namespace

RcuPeer BpPeer() { return UrcuPeer<Flavour>::Peer(); }

}  // namespace sipi::bench
