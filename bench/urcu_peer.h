// One liburcu flavour as a peer. `Flavour` has its calls by their own names.
#pragma once

#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <urcu/call-rcu.h>

#include <cstdlib>
#include <vector>

#include "bench/rcu_peer.h"

namespace sipi::bench {

inline double Now() {
  timespec time = {};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// As in the guest's benchmark: 64 bytes each.
struct UrcuElement {
  rcu_head head;
  char rest[64 - sizeof(rcu_head)];
};

template <class Flavour>
struct UrcuPeer {
  struct Updater {
    uint32_t cpu;
    uint64_t count;
  };

  static uint64_t Pairs(uint64_t count, const Root& root) {
    return bench::Pairs(count, root, Flavour::Lock, Flavour::Unlock);
  }
  static uint64_t LookUps(uint64_t count, const HashTable& table) {
    return bench::LookUps(count, table, Flavour::Lock, Flavour::Unlock);
  }

  static void Free(rcu_head* head) { std::free(reinterpret_cast<UrcuElement*>(head)); }

  static void* Update(void* argument) {
    constexpr uint64_t kCallsPerQuiescentState = 1024;
    const auto& updater = *static_cast<Updater*>(argument);
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(updater.cpu, &set);
    (void)pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
    Flavour::Enter();
    for (uint64_t i = 0; i < updater.count; ++i) {
      auto* element = static_cast<UrcuElement*>(std::malloc(sizeof(UrcuElement)));
      Flavour::Call(&element->head, Free);
      if (i % kCallsPerQuiescentState == 0) Flavour::Quiesce();
    }
    Flavour::Leave();
    return nullptr;
  }

  static double CallRcu(uint32_t updaters, uint64_t count) {
    if (Flavour::CreateWorkers() != 0) return 0;
    std::vector<Updater> args;
    for (uint32_t i = 0; i < updaters; ++i) args.push_back({i, count});
    std::vector<pthread_t> threads(updaters);
    const double begin = Now();
    for (uint32_t i = 0; i < updaters; ++i) {
      if (pthread_create(&threads[i], nullptr, Update, &args[i]) != 0) std::abort();
    }
    for (const pthread_t& thread : threads) pthread_join(thread, nullptr);
    Flavour::Barrier();
    const double end = Now();
    Flavour::FreeWorkers();
    return end - begin;
  }

  static constexpr RcuPeer Peer() {
    return {Flavour::kName, Flavour::Enter, Flavour::Leave, Pairs, LookUps, CallRcu};
  }
};

}  // namespace sipi::bench
