// liburcu's memb flavour.
#define _LGPL_SOURCE
#include <urcu/urcu-memb.h>

#include "bench/urcu_flavours.h"
#include "bench/urcu_peer.h"

namespace sipi::bench {
namespace {

struct Flavour {
  static constexpr const char* kName = "liburcu memb";
  static void Enter() { urcu_memb_register_thread(); }
  static void Leave() { urcu_memb_unregister_thread(); }
  static void Lock() { _urcu_memb_read_lock(); }
  static void Unlock() { _urcu_memb_read_unlock(); }
  static void Quiesce() {}
  static void Call(rcu_head* head, void (*function)(rcu_head*)) {
    urcu_memb_call_rcu(head, function);
  }
  static void Barrier() { urcu_memb_barrier(); }
  static int CreateWorkers() { return urcu_memb_create_all_cpu_call_rcu_data(0); }
  static void FreeWorkers() { urcu_memb_free_all_cpu_call_rcu_data(); }
};

}  // namespace

RcuPeer MembPeer() { return UrcuPeer<Flavour>::Peer(); }

}  // namespace sipi::bench
