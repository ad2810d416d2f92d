# SPDX-License-Identifier: BSD-2-Clause
"""The decisive line of a kernel's console: why it does not boot, or what it complains about.

A failure prints dozens of lines. Decisive is the first of the gravest kind: an oops comes before the panic that follows
from it, and a panic before a warning. The texts are those of Linux (lib/, kernel/locking/lockdep.c, mm/kasan/report.c,
kernel/panic.c, kernel/watchdog.c, kernel/rcu/tree_stall.h and arch/x86/), each without its timestamp.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LONGEST_LINE = 300

# Of the prefix that printk gives a line: a level, a time, and with CONFIG_PRINTK_CALLER a thread or a CPU.
_PREFIX = re.compile(r"(?:<\d{1,3}>)?(?:\[\s{0,12}\d{1,12}\.\d{1,9}\]\s?)?(?:\[\s{0,8}[TC]\d{1,8}\]\s?)?")
_FUNCTION = re.compile(r"RIP: 0010:(?:\[<[0-9a-f]+>\] )?([\w.]+)\+0x")

MEMORY, OOPS, HANG, PANIC, LOCKING = "memory error", "oops", "hang", "panic", "locking error"
WARNING, GUEST = "warning", "the guest's program"

_MEMORY_LINE = re.compile(
    "BUG: (?:KASAN|KMSAN|KFENCE|KCSAN): "
    "|UBSAN: "
    "|BUG: Bad page "
    r"|BUG [\w-]+ \(.*\): "
)
_LOCKING_LINE = re.compile(
    "WARNING: possible (?:circular|recursive) locking"
    "|WARNING: possible irq lock inversion"
    "|WARNING: (?:inconsistent lock state|bad unlock balance|bad contention|suspicious RCU usage|held lock freed)"
    "|WARNING: (?:lock held when returning|Nested lock was not taken|.*still has locks held)"
    r"|WARNING: \w+-(?:un)?safe -> \w+-(?:un)?safe lock order"
    r"|(?:\[ )?BUG: (?:Invalid wait context|spinlock |rwlock |rt_mutex|MAX_LOCK|key \w+ )"
    r"|BUG: (?:sleeping function called from invalid|scheduling while atomic|using \w+\(\) in preemptible)"
    "|INFO: trying to register non-static key"
    "|DEBUG_LOCKS_WARN_ON"
)
_HANG_LINE = re.compile(
    "watchdog: |NMI watchdog: "
    "|BUG: (?:soft lockup|workqueue lockup)"
    "|INFO: task .{1,80} blocked for more than"
    r"|(?:rcu: )?INFO: rcu\w* (?:self-)?detected "
    r"|(?:rcu: )?rcu\w* kthread starved"
)
_OOPS_LINE = re.compile(
    "BUG: (?:kernel NULL pointer|unable to handle|stack guard page|TASK stack guard page|unhandled|non-zero)"
    "|kernel BUG at |Oops: |Oops"
    "|general protection fault|invalid opcode: |divide error: |double fault: |stack segment: |int3: "
    "|traps: PANIC: |PANIC: |kernel tried to execute |Unable to handle kernel "
    "|kernel stack overflow |Insufficient stack space|stack-protector: "
)
_PANIC_LINE = re.compile("Kernel panic - not syncing")
_WARNING_LINE = re.compile(
    r"WARNING: (?:CPU: \d|.* at )"
    "|refcount_t: "
    "|list_(?:add|del) corruption"
    "|BUG: "
)
_GUEST_LINE = re.compile("counted: error: ")
_KINDS = {
    MEMORY: _MEMORY_LINE,
    LOCKING: _LOCKING_LINE,
    HANG: _HANG_LINE,
    OOPS: _OOPS_LINE,
    PANIC: _PANIC_LINE,
    WARNING: _WARNING_LINE,
    GUEST: _GUEST_LINE,
}
_CONSEQUENCE = re.compile(
    r"Kernel panic - not syncing: (?:Fatal |panic_on_|KASAN: panic_on|kernel: panic_on|softlockup|hung_task|RCU Stall"
    r"|Hard LOCKUP|UBSAN: panic_on)"
)
_GRAVITY = ((MEMORY, OOPS, HANG), (PANIC,), (LOCKING, WARNING), (GUEST,))
"""Kinds of the same gravity: of these the first line counts, and graver kinds come first."""


@dataclass(frozen=True)
class Failure:
    """The decisive line of a console, its kind, and the function in which it happened if the console names it."""

    kind: str
    line: str
    function: str = ""

    def __str__(self) -> str:
        where = f" (in {self.function})" if self.function and self.function not in self.line else ""
        return f"{self.kind}: {self.line}{where}"


def lines(console: str) -> list[str]:
    """Returns the lines without their prefixes, each of a limited length."""
    return [_PREFIX.sub("", line[: 2 * LONGEST_LINE], count=1)[:LONGEST_LINE].rstrip() for line in console.split("\n")]


def failure(console: str) -> Failure | None:
    """Returns the decisive line; None if there is none."""
    found: list[tuple[str, int, str]] = []
    every = lines(console)
    for number, line in enumerate(every):
        kind = next((kind for kind, pattern in _KINDS.items() if pattern.match(line)), "")
        if kind:
            found.append((kind, number, line))
    causes = [one for one in found if not _CONSEQUENCE.match(one[2])] or found
    for kinds in _GRAVITY:
        for kind, number, line in causes:
            if kind in kinds:
                return Failure(kind, line, _function(every[number:]))
    return None


def _function(following: list[str]) -> str:
    """Returns the function of the next line with an instruction pointer."""
    for line in following[:60]:
        if match := _FUNCTION.search(line):
            return match[1]
    return ""


def last_line(console: str) -> str:
    """Returns the last line that is not empty, and not the kernel's farewell."""
    return next((line for line in reversed(lines(console)) if line and not line.startswith("reboot: ")), "")
