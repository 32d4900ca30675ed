#include "guest/kernel/hotplug/rcu_sync.h"

#include "guest/kernel/hotplug/state.h"

namespace sipi {

// lock_ held. Ordered by the lock for those who take it, by the grace period for readers.
void RcuSync::Publish() {
  state_.Store(static_cast<uint32_t>(machine_.state()), std::memory_order_release);
}

void RcuSync::Enter() {
  RcuSyncMachine::Entry entry;
  {
    const IrqSpinGuard guard(*kernel_, lock_);
    entry = machine_.Enter();
    Publish();
  }
  switch (entry) {
    case RcuSyncMachine::Entry::kNone:
      return;
    case RcuSyncMachine::Entry::kWaitGracePeriod:
      HotplugSynchronize(*kernel_);
      return GpPassed();
    case RcuSyncMachine::Entry::kWaitPassed:
      return passed_.Wait([this] {
        return state_.Load(std::memory_order_acquire) >=
               static_cast<uint32_t>(RcuSyncMachine::State::kPassed);
      });
  }
}

void RcuSync::Exit() {
  RcuSyncMachine::Action action;
  {
    const IrqSpinGuard guard(*kernel_, lock_);
    SIPI_ASSERT(machine_.users() != 0);
    action = machine_.Exit();
    Publish();
  }
  Do(action);
}

void RcuSync::GpPassed() {
  RcuSyncMachine::Action action;
  {
    const IrqSpinGuard guard(*kernel_, lock_);
    action = machine_.GpPassed();
    Publish();
  }
  Do(action);
}

// Only one callback is ever under way: the machine asks for one where none is.
void RcuSync::Do(RcuSyncMachine::Action action) {
  switch (action) {
    case RcuSyncMachine::Action::kNone:
      return;
    case RcuSyncMachine::Action::kWake:
      return passed_.WakeAll(*kernel_);
    case RcuSyncMachine::Action::kCall:
      return rcu::CallHurry(*kernel_, head_, OnGracePeriod);
  }
}

void RcuSync::OnGracePeriod(rcu::Head& head) { reinterpret_cast<RcuSync&>(head).GpPassed(); }

}  // namespace sipi
