// What a reader costs: the guest's own rcu_read_lock() and rcu_read_unlock(), compiled for the host
// (guest/platform/threads), beside liburcu's flavours, in one run and on one thread.
//
//   rcu_read [ROUNDS [LOG2]]      default: 15 rounds, windows of 2^20 operations
//
// Subjects take turns; of each the best window counts, in nanoseconds of the thread's processor
// time per operation. "pair" is a section around one load; "look-up" one around a look-up in a hash
// table, what a reader-heavy kernel does. "empty" has no lock at all. "by the knob" chooses the
// flavour at run time, as guest.elf does; "by call" does not inline the two, as Linux's kernel
// modules find them.
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/numbers.h"
#include "bench/rcu_peer.h"
#include "bench/threads_run.h"
#include "guest/kernel/rcu/read_side.h"

namespace sipi::bench {
namespace {

struct Subject {
  std::string name;
  void (*enter)() = [] {};
  void (*leave)() = [] {};
  uint64_t (*pairs)(uint64_t, const Root&) = nullptr;
  uint64_t (*look_ups)(uint64_t, const HashTable&) = nullptr;
  double pair_ns = 1e9;
  double look_up_ns = 1e9;
};

constexpr uint64_t kRounds = 15;
constexpr uint64_t kLog2Operations = 20;

struct Plan {
  int rounds = 0;
  uint64_t operations = 0;
  std::vector<Subject> subjects;
  uint64_t sum = 0;  // so that nothing is computed in vain
};

Plan g_plan;  // RunOnThreads' body has no other way to it

double ProcessorNs() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

[[gnu::noinline]] void LockByCall() { rcu::PreemptibleReadLock(*CurrentThread()); }
[[gnu::noinline]] void UnlockByCall() { rcu::PreemptibleReadUnlock(*CurrentThread()); }

// The guest's own. Each is a type, so that the loops are made for it.
struct Empty {
  static void Lock() {}
  static void Unlock() {}
};
struct NonPreemptible {
  static void Lock() { rcu::NonPreemptibleReadLock(); }
  static void Unlock() { rcu::NonPreemptibleReadUnlock(); }
};
struct Preemptible {
  static void Lock() { rcu::PreemptibleReadLock(*CurrentThread()); }
  static void Unlock() { rcu::PreemptibleReadUnlock(*CurrentThread()); }
};
struct ByKnob {
  static void Lock() { rcu::ReadLock(); }
  static void Unlock() { rcu::ReadUnlock(); }
};
struct ByCall {
  static void Lock() { LockByCall(); }
  static void Unlock() { UnlockByCall(); }
};

template <class Kind>
Subject Own(const char* name) {
  Subject subject;
  subject.name = name;
  subject.pairs = [](uint64_t count, const Root& root) {
    return Pairs(count, root, Kind::Lock, Kind::Unlock);
  };
  subject.look_ups = [](uint64_t count, const HashTable& table) {
    return LookUps(count, table, Kind::Lock, Kind::Unlock);
  };
  return subject;
}

template <class Work>
double PerOperation(Work work) {
  const double begin = ProcessorNs();
  g_plan.sum += work();
  return (ProcessorNs() - begin) / static_cast<double>(g_plan.operations);
}

// In the guest's thread "init".
void Measure(Kernel&) {
  Item item;
  const Root root = {&item};
  const HashTable table(14);
  for (int round = 0; round < g_plan.rounds; ++round) {
    for (Subject& subject : g_plan.subjects) {
      subject.enter();
      const double pair = PerOperation([&] { return subject.pairs(g_plan.operations, root); });
      const double look_up =
          PerOperation([&] { return subject.look_ups(g_plan.operations, table); });
      subject.leave();
      subject.pair_ns = std::min(subject.pair_ns, pair);
      subject.look_up_ns = std::min(subject.look_up_ns, look_up);
    }
  }
}

int Run() {
  g_plan.subjects = {Own<Empty>("empty"), Own<NonPreemptible>("guest non-preemptible"),
                     Own<Preemptible>("guest preemptible"),
                     Own<ByKnob>("guest preemptible, by the knob"),
                     Own<ByCall>("guest preemptible, by call")};
  for (const RcuPeer& peer : RcuPeers()) {
    g_plan.subjects.push_back({.name = peer.name,
                               .enter = peer.enter,
                               .leave = peer.leave,
                               .pairs = peer.pairs,
                               .look_ups = peer.look_ups});
  }
  ThreadsConfig config;
  config.cpus = 1;
  config.kernel.rcu_flavour = abi::RcuFlavour::kPreemptible;
  const ThreadsResult result = RunOnThreads(config, Measure);
  if (!result.ok) {
    std::fprintf(stderr, "rcu_read: the guest did not end well: %s\n", result.error.c_str());
    return 1;
  }
  const double empty = g_plan.subjects[0].look_up_ns;
  std::printf("%-32s  %9s  %13s  %9s\n", "", "pair, ns", "look-up, ns", "to empty");
  for (const Subject& subject : g_plan.subjects) {
    std::printf("%-32s  %9.2f  %13.2f  %8.1f%%\n", subject.name.c_str(), subject.pair_ns,
                subject.look_up_ns, (subject.look_up_ns / empty - 1) * 100);
  }
  if (RcuPeers().empty()) {
    std::printf("liburcu is missing beside them: install liburcu-dev and configure anew\n");
  }
  std::fprintf(stderr, "(checksum %llx)\n", static_cast<unsigned long long>(g_plan.sum));
  return 0;
}

}  // namespace
}  // namespace sipi::bench

int main(int argc, char** argv) {
  using sipi::bench::g_plan;
  const std::vector<uint64_t> numbers = sipi::bench::NumbersOf(
      argc, argv, "rcu_read [ROUNDS [LOG2-OPERATIONS]]: the cost of RCU's readers, beside liburcu.",
      {{"ROUNDS", sipi::bench::kRounds, 1, 1'000'000},
       {"LOG2-OPERATIONS", sipi::bench::kLog2Operations, 0, 30}});
  g_plan.rounds = static_cast<int>(numbers[0]);
  g_plan.operations = uint64_t{1} << numbers[1];
  return sipi::bench::Run();
}
