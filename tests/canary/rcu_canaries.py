"""Broken lines of RCU, the scheduler and hotplug (see mutate.py). Numbers from 101."""

RCU_CANARIES = {
}
