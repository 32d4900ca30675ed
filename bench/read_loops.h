// What the read-side benchmarks repeat: a critical section around one load, and one around a
// look-up in a hash table. Templates, so that lock and unlock are inlined as they are in their
// users.
#pragma once

#include <cstdint>
#include <vector>

namespace sipi::bench {

struct Item {
  uint64_t key = 0;
  uint64_t value = 1;
  Item* next = nullptr;
};

// What readers find; published as RCU's users do.
struct Root {
  Item* item = nullptr;
};

template <class Lock, class Unlock>
uint64_t Pairs(uint64_t count, const Root& root, Lock lock, Unlock unlock) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < count; ++i) {
    lock();
    sum += __atomic_load_n(&root.item, __ATOMIC_RELAXED)->value;
    unlock();
  }
  return sum;
}

// Chained, with as many items as buckets; it fits a second-level cache.
class HashTable {
 public:
  explicit HashTable(uint32_t bits)
      : mask_((uint64_t{1} << bits) - 1), buckets_(mask_ + 1), items_(mask_ + 1) {
    for (uint64_t i = 0; i <= mask_; ++i) {
      items_[i] = {.key = Mix(i), .value = i, .next = buckets_[Slot(Mix(i))]};
      buckets_[Slot(Mix(i))] = &items_[i];
    }
  }

  const Item* Find(uint64_t key) const {
    const Item* item = __atomic_load_n(&buckets_[Slot(key)], __ATOMIC_RELAXED);
    while (item != nullptr && item->key != key)
      item = __atomic_load_n(&item->next, __ATOMIC_RELAXED);
    return item;
  }
  // The key of the n-th item, whatever n is.
  uint64_t Key(uint64_t n) const { return Mix(n & mask_); }

 private:
  static uint64_t Mix(uint64_t n) {
    n *= 0x9e3779b97f4a7c15u;
    return n ^ n >> 29;
  }
  uint64_t Slot(uint64_t key) const { return key >> 20 & mask_; }

  uint64_t mask_;
  std::vector<Item*> buckets_;
  std::vector<Item> items_;
};

template <class Lock, class Unlock>
uint64_t LookUps(uint64_t count, const HashTable& table, Lock lock, Unlock unlock) {
  uint64_t sum = 0;
  uint64_t n = 1;
  for (uint64_t i = 0; i < count; ++i) {
    n = n * 6364136223846793005u + 1442695040888963407u;
    lock();
    const Item* item = table.Find(table.Key(n >> 33));
    if (item != nullptr) sum += item->value;
    unlock();
  }
  return sum;
}

}  // namespace sipi::bench
