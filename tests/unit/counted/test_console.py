# SPDX-License-Identifier: BSD-2-Clause
"""The decisive line of a kernel's console for each kind of failure; the lines are as Linux 6.1 prints them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.counted import console

OOPS = """\
[    0.812345] counted: up
[    1.500001] BUG: kernel NULL pointer dereference, address: 0000000000000008
[    1.500002] #PF: supervisor read access in kernel mode
[    1.500003] #PF: error_code(0x0000) - not-present page
[    1.500004] PGD 0 P4D 0
[    1.500005] Oops: 0000 [#1] PREEMPT SMP NOPTI
[    1.500006] CPU: 0 PID: 1 Comm: init Not tainted 6.1.0 #1
[    1.500008] RIP: 0010:tcp_v4_rcv+0x2d/0xd10
[    1.500009] Call Trace:
[    1.500010] Kernel panic - not syncing: Fatal exception in interrupt
[    1.500011] Kernel Offset: disabled
"""
LOCKDEP = """\
[    2.000000] ======================================================
[    2.000001] WARNING: possible circular locking dependency detected
[    2.000002] 6.1.0 #1 Not tainted
[    2.000003] ------------------------------------------------------
[    2.000004] init/1 is trying to acquire lock:
"""
RECURSIVE = """\
============================================
WARNING: possible recursive locking detected
6.12.0 #1 Not tainted
"""
WARN = """\
[    3.000000][    T1] ------------[ cut here ]------------
[    3.000001][    T1] WARNING: CPU: 0 PID: 1 at net/ipv4/tcp.c:1234 tcp_recvmsg_locked+0x12/0x900
[    3.000002][    T1] RIP: 0010:tcp_recvmsg_locked+0x12/0x900
"""
REFCOUNT = """\
------------[ cut here ]------------
refcount_t: underflow; use-after-free.
WARNING: CPU: 0 PID: 1 at lib/refcount.c:28 refcount_warn_saturate+0xba/0x110
RIP: 0010:refcount_warn_saturate+0xba/0x110
"""
KASAN = """\
[    1.000000] ==================================================================
[    1.000001] BUG: KASAN: slab-use-after-free in tcp_ack+0x123/0x1000
[    1.000002] Read of size 4 at addr ffff888003a4c000 by task init/1
[    1.000003] Kernel panic - not syncing: KASAN: panic_on_warn set ...
"""
LOCKUP = """\
[   24.000000] watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [init:1]
[   24.000001] RIP: 0010:tcp_v4_rcv+0x10/0xd10
"""
STALL = """\
[   21.000000] rcu: INFO: rcu_sched self-detected stall on CPU
[   21.000001] rcu: 	0-....: (2099 ticks this GP) idle=18bc/1/0x4000000000000000 softirq=52/52 fqs=1050
"""
TASK = "[  122.0] INFO: task init:1 blocked for more than 120 seconds.\n"
BUG_ON = """\
------------[ cut here ]------------
kernel BUG at net/core/skbuff.c:112!
invalid opcode: 0000 [#1] SMP NOPTI
RIP: 0010:skb_panic+0x4c/0x4e
Kernel panic - not syncing: Fatal exception
"""
PANIC = "VFS: Cannot open root device\nKernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)\n"
INIT_KILLED = """\
init[1]: segfault at 0 ip 0000000000401000 sp 00007ffc error 4 in init
Kernel panic - not syncing: Attempted to kill init! exitcode=0x0000000b
"""


@pytest.mark.parametrize(
    ("text", "kind", "line", "function"),
    [
        (OOPS, console.OOPS, "BUG: kernel NULL pointer dereference, address: 0000000000000008", "tcp_v4_rcv"),
        (LOCKDEP, console.LOCKING, "WARNING: possible circular locking dependency detected", ""),
        (RECURSIVE, console.LOCKING, "WARNING: possible recursive locking detected", ""),
        (WARN, console.WARNING, "WARNING: CPU: 0 PID: 1 at net/ipv4/tcp.c:1234 tcp_recvmsg_locked+0x12/0x900",
         "tcp_recvmsg_locked"),
        (REFCOUNT, console.WARNING, "refcount_t: underflow; use-after-free.", "refcount_warn_saturate"),
        (KASAN, console.MEMORY, "BUG: KASAN: slab-use-after-free in tcp_ack+0x123/0x1000", ""),
        (LOCKUP, console.HANG, "watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [init:1]", "tcp_v4_rcv"),
        (STALL, console.HANG, "rcu: INFO: rcu_sched self-detected stall on CPU", ""),
        (TASK, console.HANG, "INFO: task init:1 blocked for more than 120 seconds.", ""),
        (BUG_ON, console.OOPS, "kernel BUG at net/core/skbuff.c:112!", "skb_panic"),
        (PANIC, console.PANIC, "Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)", ""),
        (INIT_KILLED, console.PANIC, "Kernel panic - not syncing: Attempted to kill init! exitcode=0x0000000b", ""),
        ("counted: error: recv: Connection refused\n", console.GUEST, "counted: error: recv: Connection refused", ""),
    ],
)  # fmt: skip
def test_the_decisive_line_of_each_kind(text: str, kind: str, line: str, function: str) -> None:
    assert console.failure(text) == console.Failure(kind, line, function)


def test_a_good_console_has_no_decisive_line() -> None:
    good = """\
[    0.000000] Linux version 6.1.0-perfweb (perfweb@perfweb)
[    0.000000] Warning: unable to open an initial console.
[    0.100000] process: using TSC idle
[    0.200000] rcu: Hierarchical RCU implementation.
[    0.300000] Lock dependency validator: Copyright (c) 2006 Red Hat, Inc.
[    0.400000] debug: unmapping init memory
counted: up
counted: done
reboot: Restarting system
"""
    assert console.failure(good) is None


@pytest.mark.parametrize("first", [WARN, LOCKDEP, REFCOUNT])
def test_an_oops_is_graver_than_a_warning_before_it(first: str) -> None:
    assert console.failure(first + OOPS) == console.failure(OOPS)


def test_of_two_equally_grave_lines_the_first_counts() -> None:
    assert console.failure(WARN + LOCKDEP) == console.failure(WARN)
    found = console.failure(KASAN + OOPS)
    assert found is not None
    assert found.line == "BUG: KASAN: slab-use-after-free in tcp_ack+0x123/0x1000"


@pytest.mark.parametrize("cause", [WARN, LOCKDEP, LOCKUP])
def test_a_panic_on_demand_does_not_hide_its_cause(cause: str) -> None:
    demanded = "Kernel panic - not syncing: panic_on_warn set\n"
    assert console.failure(cause + demanded) == console.failure(cause)


def test_a_panic_on_demand_alone_is_a_panic() -> None:
    found = console.failure("[    1.0] Kernel panic - not syncing: Fatal exception\n")
    assert found is not None
    assert found.kind == console.PANIC


def test_its_words_name_the_function_once() -> None:
    assert str(console.failure(OOPS)).endswith("0000000000000008 (in tcp_v4_rcv)")
    assert str(console.failure(WARN)).count("tcp_recvmsg_locked") == 1


@given(st.text(), st.sampled_from([OOPS, LOCKDEP, WARN, KASAN, PANIC]))
def test_what_the_guest_prints_before_hides_nothing(before: str, text: str) -> None:
    """Whatever a program prints, a line of the kernel is found: another one of the same gravity can precede it."""
    assert console.failure(f"{before}\n{text}") is not None


@given(st.text(alphabet=st.sampled_from("[]<>0123456789.: TCBUGWARNINGrcu\n")))
def test_any_text_is_read(text: str) -> None:
    found = console.failure(text)
    assert found is None or len(found.line) <= console.LONGEST_LINE


@given(st.integers(0, 10**6), st.sampled_from([OOPS, LOCKDEP, BUG_ON, TASK]))
def test_prefixes_do_not_matter(number: int, text: str) -> None:
    bare = "\n".join(console.lines(text))
    stamped = "\n".join(f"<4>[{number:5d}.{number:06d}][    T1] {line}" for line in bare.split("\n"))
    assert console.failure(stamped) == console.failure(bare) == console.failure(text)
