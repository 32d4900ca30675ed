// scratch: run campaign
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include "vmm/explore/explorer.h"
#include "vmm/explore/exhaustive.h"
#include "vmm/explore/rcu_case.h"
using namespace sipi;
int main(int argc, char** argv) {
  if (argc > 1 && !strcmp(argv[1], "g8")) {
    std::atomic<bool> go{false};
    for (uint64_t m : kMeetings) {
      if (argc > 3 && strtoull(argv[3],0,10) != (m & 0xffffffff)) continue;
      ExhaustivePlan p; p.space.cpus = 3; p.space.scenario = ExploreScenario::kRcu; p.met_at = m; p.preemptions = atoi(argv[2]);
      auto r = RunExhaustive(p, go, nullptr);
      printf("%s: %lu schedules %s %s\n", MetAt(m).c_str(), r.schedules, r.complete ? "complete" : "", r.wrong.c_str());
      if (r.failing) { Explorer e; auto c = ExhaustiveCase(p); c.choices = *r.failing; e.Run(c); printf("%s%s", DescribeChoices(e.ChoicePoints()).c_str(), e.Trace(c, 60).c_str()); return 1; }
      fflush(stdout);
    }
    return 0;
  }
  uint64_t first = argc > 1 ? strtoull(argv[1], 0, 10) : 1, count = argc > 2 ? strtoull(argv[2], 0, 10) : 100;
  ExploreSpace space; space.scenario = ExploreScenario::kRcu;
  Explorer e;
  uint64_t bad = 0;
  for (uint64_t s = first; s < first + count; ++s) {
    auto c = CaseOf(s, space);
    std::string w = e.Run(c);
    if (!w.empty()) { ++bad; printf("%s\n   %s\n", Describe(c).c_str(), w.c_str()); if (argc > 3 && atoi(argv[3])) { printf("%s", e.Trace(c, atoi(argv[3])).c_str()); return 1; } fflush(stdout); if (bad > 8) return 1; }
  }
  printf("%lu bad of %lu\n", bad, count);
}
