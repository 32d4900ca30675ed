// What call_rcu() needs in each object that is to be freed. Free of the platform.
#pragma once

namespace sipi::rcu {

struct Head {
  Head* next = nullptr;
  void (*function)(Head&) = nullptr;
};

}  // namespace sipi::rcu
