// Where a reader that loses its CPU goes on its leaf's list. The list has the youngest first, and a
// pointer into it per kind of grace period: whoever stands from there to the end holds it up. So a
// thread must stand before a pointer that it has nothing to do with, at or behind one that it has;
// what is behind a new pointer is held up as well, whether it must or not: so as little as
// possible.
#pragma once

#include <cstdint>

namespace sipi::rcu {

enum class BlockedPlace : uint8_t { kFirst, kLast, kAfterExpTasks, kAfterGpTasks };

// gp_tasks, exp_tasks: the leaf's list has such readers already. blocks_gp, blocks_exp: the grace
// period still waits for the CPU that the thread leaves, and so for the thread.
constexpr BlockedPlace PlaceOfBlocked(bool gp_tasks, bool exp_tasks, bool blocks_gp,
                                      bool blocks_exp) {
  using enum BlockedPlace;
  // Index: gp_tasks 8, exp_tasks 4, blocks_gp 2, blocks_exp 1.
  constexpr BlockedPlace kTable[16] = {
      kFirst,  // nobody waits for it
      // the first that an expedited one waits for: nobody else is to stand behind it
      kLast,
      kLast,           // the first that the normal one waits for: likewise
      kLast,           // the first that both wait for
      kFirst,          // exp_tasks has nothing to do with it
      kAfterExpTasks,  // joins them, and leaves the pointer where it is
      kFirst,          // becomes gp_tasks, but must not join exp_tasks
      kAfterExpTasks,  // joins them; becomes gp_tasks with as few as possible behind
      kFirst,          // gp_tasks has nothing to do with it
      kLast,           // becomes exp_tasks with nobody behind it, and gp_tasks cannot be helped
      kAfterGpTasks,   // joins them
      kLast,           // joins them, becomes exp_tasks with nobody behind it
      kFirst,          // neither
      kAfterExpTasks,  // joins the one; the other, if exp_tasks stands behind gp_tasks
      kAfterGpTasks,   // likewise
      kLast,           // behind both
  };
  return kTable[(gp_tasks ? 8u : 0u) + (exp_tasks ? 4u : 0u) + (blocks_gp ? 2u : 0u) +
                (blocks_exp ? 1u : 0u)];
}

}  // namespace sipi::rcu
