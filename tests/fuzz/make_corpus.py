#!/usr/bin/env python3
"""Writes the seeds of the APIC fuzzer, or with --check says which of them are not as written here.

Usage: make_corpus.py [--check] FOLDER

A seed is two bytes that say what the machine is like, then operations (tests/fuzz/machine.h): a byte,
a CPU, operands, little-endian. Each seed is one story that the SDM tells, so that the fuzzer starts
from inputs which reach every rule.
"""
import pathlib
import struct
import sys

(STORE, LOAD, WRMSR, RDMSR, BASE, DEADLINE, TIME, DEVICE, LOCAL, TAKE, EOI, IPI, POST, STARTUP, CR8,
 RESTORE) = range(16)

# IDs of the machine's CPUs, and its features.
DENSE, SPARSE, CLUSTERS, ODD = 0, 1, 2, 3
NO_X2APIC, NO_DEADLINE, NO_CMCI, DIRECTED_EOI, NO_LOWEST_PRIORITY, WRITABLE_ID = 1, 2, 4, 8, 16, 32


def machine(cpus, ids=DENSE, clock=0, x2apic=False, features=0):
    return bytes([cpus - 1 | ids << 3 | clock << 5 | x2apic << 7, features])


def store(cpu, offset, value, size=4):
    return struct.pack('<BBHBQ', STORE, cpu, offset, size - 1, value)


def load(cpu, offset, size=4):
    return struct.pack('<BBHB', LOAD, cpu, offset, size - 1)


def wrmsr(cpu, msr, value):
    return struct.pack('<BBBQ', WRMSR, cpu, msr - 0x800, value)


def rdmsr(cpu, msr):
    return bytes([RDMSR, cpu, msr - 0x800])


def base(cpu, low, high=0):
    return struct.pack('<BBH', BASE, cpu, low | high << 12)


def deadline(cpu, cycles):
    return struct.pack('<BBi', DEADLINE, cpu, cycles)


def passes(ns):
    return struct.pack('<BBI', TIME, 0, ns)


def device(low, dest):
    return struct.pack('<BBIB', DEVICE, 0, low, dest)


def local(cpu, entry):
    return bytes([LOCAL, cpu, entry])


def take(cpu, even_if_none=0):
    return bytes([TAKE, cpu, even_if_none])


def eoi(cpu):
    return bytes([EOI, cpu])


def ipi(cpu, low, dest=0):
    return struct.pack('<BBII', IPI, cpu, low, dest)


def post(cpu, init=0, sipi=None):
    return bytes([POST, cpu, init | (sipi is not None) << 1, sipi or 0])


def startup(cpu):
    return bytes([STARTUP, cpu])


def cr8(cpu, value):
    return bytes([CR8, cpu, value])


def restore(cpu, offset, value):
    return struct.pack('<BBHI', RESTORE, cpu, offset, value)


def enable(*cpus):
    """SVR = 1FFH, in xAPIC mode."""
    return b''.join(store(cpu, 0x0f0, 0x1ff) for cpu in cpus)


def enable_x2(*cpus):
    return b''.join(wrmsr(cpu, 0x80f, 0x1ff) for cpu in cpus)


CMCI, TIMER, THERMAL, PERF, LINT0, LINT1, ERROR = range(7)

SEEDS = {
    # 9.4.4, as Linux does it: assert, de-assert, SIPI, SIPI; then the target looks.
    'init_sipi_sipi': machine(2) + ipi(0, 0xc500, 1) + ipi(0, 0x8500, 1) + ipi(0, 0x4608, 1) + ipi(0, 0x4608, 1) +
    startup(1) + startup(1),
    # A broadcast of the same, in x2APIC mode, to CPUs of which one has started already.
    'init_sipi_broadcast': machine(4, x2apic=True) + post(2, sipi=8) + startup(2) + ipi(0, 0xc4500) +
    ipi(0, 0xc4608) + b''.join(startup(cpu) for cpu in range(4)),
    # INIT to a running, a waiting and a boot CPU; a SIPI that does not count.
    'init_states': machine(3) + post(1, sipi=9) + startup(1) + post(1, 1) + startup(1) + post(2, 1, 8) + post(2, 1) +
    startup(2) + post(0, 1, 8) + startup(0),
    # The BSP flag moves to another CPU, which then does not wait after INIT.
    'bsp_flag': machine(2) + post(1, sipi=8) + startup(1) + base(1, 0x900) + base(0, 0x800) + post(1, 1, 8) +
    startup(1) + post(0, 1) + startup(0),
    # 11.8: two priorities nest, TPR holds back, EOI uncovers.
    'nesting': machine(1) + enable(0) + device(0x0031, 0) + take(0) + device(0x0052, 0) + take(0) + device(0x003f, 0) +
    eoi(0) + eoi(0) + take(0) + cr8(0, 5) + device(0x0058, 0) + eoi(0) + cr8(0, 0) + take(0) + eoi(0),
    # 11.9: TPR raised between INTR and INTA.
    'spurious': machine(1) + enable(0) + device(0x0031, 0) + cr8(0, 3) + take(0, 1) + cr8(0, 0) + take(0, 1) + eoi(0),
    # 11.8.5: level-triggered, with and without the broadcast.
    'level_eoi': machine(1, features=DIRECTED_EOI) + enable(0) + device(0x8041, 0) + take(0) + eoi(0) +
    store(0, 0x0f0, 0x11ff) + device(0x8041, 0) + take(0) + eoi(0),
    # 11.5.1: LINT0 level-triggered with remote IRR, ExtINT, NMI; the counter's entry masks itself.
    'local_sources': machine(1) + enable(0) + store(0, 0x350, 0x8041) + local(0, LINT0) + local(0, LINT0) + take(0) +
    eoi(0) + local(0, LINT0) + store(0, 0x350, 0x700) + local(0, LINT0) + store(0, 0x360, 0x400) + local(0, LINT1) +
    store(0, 0x340, 0x51) + local(0, PERF) + local(0, PERF) + store(0, 0x330, 0x201) + local(0, THERMAL) +
    store(0, 0x2f0, 0x61) + local(0, CMCI) + base(0, 0x100) + local(0, LINT0) + local(0, LINT1),
    # 11.5.3: every bit of ESR, with the error interrupt.
    'errors': machine(1, features=NO_LOWEST_PRIORITY) + enable(0) + store(0, 0x370, 0xfe) + load(0, 0x040) +
    ipi(0, 0x4005, 1) + device(0x0003, 0) + ipi(0, 0x4131, 1) + store(0, 0x280, 0) + load(0, 0x280) + take(0) + eoi(0) +
    store(0, 0x370, 0x05) + store(0, 0x3f0, 0) + store(0, 0x280, 0),
    # 11.4.7.2: software-disabled with something pending and a running timer.
    'software_disable': machine(2) + enable(0, 1) + store(1, 0x320, 0x200ef) + store(1, 0x380, 500) + device(0x0031, 1) +
    store(1, 0x0f0, 0xff) + store(1, 0x350, 0x700) + ipi(0, 0x4032, 1) + ipi(0, 0x4400, 1) + ipi(1, 0x4033, 0) +
    take(1) + eoi(1) + passes(2000),
    # 11.5.4: one-shot, periodic, a new divisor, mode changes, a stop.
    'timer_counts': machine(1) + enable(0) + store(0, 0x320, 0x000ef) + store(0, 0x3e0, 0xb) + store(0, 0x380, 1000) +
    passes(400) + store(0, 0x3e0, 0x3) + load(0, 0x390) + passes(20000) + take(0) + eoi(0) + store(0, 0x320, 0x200ef) +
    store(0, 0x380, 100) + passes(5000) + store(0, 0x320, 0x000ef) + passes(5000) + store(0, 0x380, 0) + passes(9000),
    # 11.5.4.1: armed, moved, fired, left, re-entered; MSR ignored in other modes.
    'timer_deadline': machine(1, clock=1, x2apic=True) + enable_x2(0) + deadline(0, 3000) + wrmsr(0, 0x832, 0x400ef) +
    deadline(0, 30000) + deadline(0, 3000) + passes(999) + passes(1) + take(0) + eoi(0) + deadline(0, -5) +
    deadline(0, 3000) + wrmsr(0, 0x832, 0x000ef) + wrmsr(0, 0x838, 77) + wrmsr(0, 0x832, 0x600ef) + passes(100000),
    'timer_slow_clock': machine(1, clock=3) + enable(0) + store(0, 0x320, 0x200ef) + store(0, 0x3e0, 0xa) +
    store(0, 0x380, 0xffffffff) + passes(0xffffffff) + store(0, 0x380, 1) + passes(0xffffffff),
    # 11.12.5: round through all modes, with the steps that fault.
    'modes': machine(2) + enable(0) + base(0, 0xd00) + rdmsr(0, 0x80d) + base(0, 0x900) + base(0, 0x100) +
    base(0, 0xd00) + base(0, 0x900) + base(0, 0x500) + base(0, 0x901) + base(0, 0x900, 4) + store(0, 0x080, 0x40),
    # 11.12.1: registers that do not exist, reserved bits, the self IPI.
    'x2apic_registers': machine(1, x2apic=True) + enable_x2(0) +
    b''.join(rdmsr(0, 0x800 + index) for index in (0, 2, 3, 8, 9, 0xa, 0xc, 0xd, 0xe, 0x10, 0x27, 0x28, 0x30, 0x31, 0x39)) +
    wrmsr(0, 0x808, 0x150) + wrmsr(0, 0x80b, 1) + wrmsr(0, 0x80e, 0xffffffff) + wrmsr(0, 0x830, 0x2000) +
    wrmsr(0, 0x838, 1 << 32) + wrmsr(0, 0x83e, 4) + wrmsr(0, 0x83f, 0xf1) + wrmsr(0, 0x83f, 0x05) + wrmsr(0, 0x80f, 0x1300),
    # 11.12.10: logical addressing of one cluster, of another, of none, of all.
    'x2apic_logical': machine(8, ids=CLUSTERS, x2apic=True) + enable_x2(*range(8)) + ipi(0, 0x4831, 0x00010002) +
    ipi(0, 0x4832, 0x00020001) + ipi(0, 0x4833, 0x00000000) + ipi(0, 0x4834, 0xffffffff) + ipi(3, 0x4931, 0x0003ffff),
    # 11.6.2.2: flat and cluster model, two CPUs of one cluster, the broadcast.
    'xapic_logical': machine(4) + enable(*range(4)) + b''.join(store(cpu, 0x0d0, 1 << 24 + cpu) for cpu in range(4)) +
    ipi(0, 0x4831, 0x06) + ipi(0, 0x4831, 0xff) +
    b''.join(store(cpu, 0x0e0, 0x0fffffff) + store(cpu, 0x0d0, (0x11, 0x12, 0x21, 0x18)[cpu] << 24) for cpu in range(4)) +
    ipi(0, 0x4832, 0x19) + store(2, 0x0e0, 0x7fffffff) + ipi(0, 0x4833, 0x21),
    # 11.6.2.4: the least priority of several; never back to the sender.
    'lowest_priority': machine(4) + enable(*range(4)) + b''.join(store(cpu, 0x0d0, 1 << 24 + cpu) for cpu in range(4)) +
    cr8(0, 4) + cr8(1, 3) + cr8(2, 2) + cr8(3, 9) + ipi(0, 0x4931, 0x0f) + ipi(2, 0xc4132) + ipi(0, 0x44133) +
    ipi(0, 0x84134) + device(0x0931, 0x0f),
    # Shorthands, with rubbish in the destination; level-triggered IPIs; modes that reach nobody.
    'shorthands': machine(4, x2apic=True) + enable_x2(*range(4)) + ipi(1, 0x44031, 0xdeadbeef) + ipi(1, 0x84032, 0xdeadbeef) +
    ipi(1, 0xc4033, 0xdeadbeef) + ipi(1, 0x8c034) + ipi(1, 0x44500) + ipi(1, 0x84400) + ipi(1, 0x4300, 2) + ipi(1, 0x4700, 2),
    # IDs that 8 bits cannot hold, reached from both modes.
    'wide_ids': machine(8, ids=ODD) + enable(*range(8)) + base(0, 0xd00) + base(4, 0xc00) + ipi(0, 0x4500, 300) +
    ipi(0, 0x4500, 256) + ipi(0, 0x4031, 44) + ipi(1, 0x4032, 44) + ipi(1, 0x4033, 255) + ipi(0, 0x4034, 255) +
    ipi(0, 0x4035, 0xffffffff) + ipi(0, 0x4836, 0xffff8000),
    # 11.4.6: software gives CPUs other IDs, one of them twice, two the same; INIT keeps them, EN = 0 does not.
    'written_ids': machine(4, features=WRITABLE_ID) + enable(*range(4)) + store(1, 0x020, 7 << 24) + store(1, 0x020, 9 << 24) +
    ipi(0, 0x4031, 9) + ipi(0, 0x4032, 7) + ipi(0, 0x4033, 1) + store(2, 0x020, 9 << 24) + ipi(3, 0x4034, 9) +
    device(0x0035, 9) + ipi(0, 0x4131, 9) + post(1, 1, 8) + startup(1) + ipi(0, 0x4500, 9) + base(2, 0xc00) +
    ipi(0, 0x4036, 2) + base(2, 0x000) + base(1, 0x000) + base(1, 0x800) + load(1, 0x020) + ipi(0, 0x4500, 1) +
    ipi(0, 0x4500, 9),
    # 11.8.4: an edge on a pending level and the other way round; 11.5.1: LINT0's vector changes before its EOI.
    'trigger_modes': machine(1) + enable(0) + device(0x8041, 0) + device(0x0041, 0) + device(0x0042, 0) + device(0x8042, 0) +
    take(0) + eoi(0) + take(0) + eoi(0) + store(0, 0x350, 0x8051) + local(0, LINT0) + take(0) + store(0, 0x350, 0x8052) +
    eoi(0) + local(0, LINT0),
    # CPUs in three modes at once.
    'mixed_modes': machine(3, ids=SPARSE) + enable(0, 1, 2) + base(1, 0xc00) + base(2, 0x000) + ipi(0, 0xc4031) +
    ipi(1, 0xc4032) + ipi(2, 0xc4033) + ipi(1, 0x4034, 18) + device(0x0035, 0xff),
    # 11.4.1: accesses that the SDM leaves undefined.
    'access_sizes': machine(1) + enable(0) + load(0, 0x023, 1) + load(0, 0x022, 4) + load(0, 0x030, 8) + load(0, 0x048, 2) +
    store(0, 0x080, 0x50, 1) + store(0, 0x084, 0x50, 4) + store(0, 0x300, 0x7_0000_44031, 8) + load(0, 0xffc, 8),
    # A saved page with rubbish in it; the first three were found by the fuzzer.
    'restore': machine(1) + enable(0) + restore(0, 0x330, 0x3101) + restore(0, 0x280, 0x82) + base(0, 0x100) +
    restore(0, 0x0f0, 0xff20) + base(0, 0x900) + restore(0, 0x200, 0xffffffff) + restore(0, 0x180, 0xffffffff) +
    restore(0, 0x360, 0x0000d041) + restore(0, 0x390, 5) + restore(0, 0x380, 9),
    # The smallest processor there is.
    'old_processor': machine(2, features=NO_X2APIC | NO_DEADLINE | NO_CMCI | NO_LOWEST_PRIORITY) + enable(0, 1) +
    base(0, 0xd00) + deadline(0, 100) + store(0, 0x2f0, 0x51) + store(0, 0x320, 0x400ef) + ipi(0, 0xc4131) + load(0, 0x030),
}


def main(arguments):
    check = '--check' in arguments
    folder = pathlib.Path([a for a in arguments if a != '--check'][0])
    if not check:
        folder.mkdir(parents=True, exist_ok=True)
        for name, seed in SEEDS.items():
            (folder / name).write_bytes(seed)
        return 0
    there = {path.name: path.read_bytes() for path in folder.iterdir()}
    # Inputs that broke a rule once are kept under a name of their own, and are nobody's to make.
    stale = [name for name, seed in SEEDS.items() if there.get(name) != seed]
    stale += [name for name in there if name not in SEEDS and not name.startswith('found-')]
    for name in sorted(stale):
        print(f'{folder / name}: not as make_corpus.py writes it')
    return 1 if stale else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
