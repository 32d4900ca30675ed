// A CPU's store buffer, as x86 has it (x86-TSO: Sewell et al., CACM 53(7), 2010): its own plain
// stores, oldest first, which no other CPU sees yet. Locked operations and fences empty it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sipi::sim {

class StoreBuffer {
 public:
  struct Entry {
    void* word = nullptr;
    uint32_t bytes = 0;
    uint64_t value = 0;
  };

  bool empty() const { return count_ == 0; }
  size_t size() const { return count_; }
  bool full() const { return count_ == kEntries; }
  void Push(const Entry& entry) { entries_[(first_ + count_++) % kEntries] = entry; }
  Entry Pop() {
    const Entry entry = entries_[first_];
    first_ = (first_ + 1) % kEntries;
    --count_;
    return entry;
  }
  void Clear() { count_ = 0; }

  // The youngest store to that word.
  bool Find(const void* word, uint64_t* value) const {
    for (size_t i = count_; i-- > 0;) {
      const Entry& entry = entries_[(first_ + i) % kEntries];
      if (entry.word != word) continue;
      *value = entry.value;
      return true;
    }
    return false;
  }

 private:
  static constexpr size_t kEntries = 16;
  Entry entries_[kEntries];
  size_t first_ = 0;
  size_t count_ = 0;
};

}  // namespace sipi::sim
