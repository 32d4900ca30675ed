// liburcu's qsbr flavour.
#define _LGPL_SOURCE
#include <urcu/urcu-qsbr.h>

#include "bench/urcu_flavours.h"
#include "bench/urcu_peer.h"

namespace sipi::bench {
namespace {

struct Flavour {
  static constexpr const char* kName = "liburcu qsbr";
  static void Enter() { urcu_qsbr_register_thread(); }
  static void Leave() { urcu_qsbr_unregister_thread(); }
  static void Lock() { _urcu_qsbr_read_lock(); }
  static void Unlock() { _urcu_qsbr_read_unlock(); }
  static void Quiesce() { urcu_qsbr_quiescent_state(); }
  static void Call(rcu_head* head, void (*function)(rcu_head*)) {
    urcu_qsbr_call_rcu(head, function);
  }
  static void Barrier() { urcu_qsbr_barrier(); }
  static int CreateWorkers() { return urcu_qsbr_create_all_cpu_call_rcu_data(0); }
  static void FreeWorkers() { urcu_qsbr_free_all_cpu_call_rcu_data(); }
};

}  // namespace

RcuPeer QsbrPeer() { return UrcuPeer<Flavour>::Peer(); }

}  // namespace sipi::bench
