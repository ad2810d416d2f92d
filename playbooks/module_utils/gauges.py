# SPDX-License-Identifier: BSD-2-Clause
"""Gauges of what may have disturbed a sample: differences of /proc and /sys between two observations.

An observation starts no process and takes some milliseconds, and 50 more if the CPUs' speed is measured. What a host
does not have (a temperature, a driver's counters of pause frames) is missing among its gauges, never zero.

Only the CPUs that the run may use count: those that its processes are pinned to. CPU time is attributed to processes,
each to the CPU where it ran last. The time of an ended process belongs to the parent that waited for it
(proc_pid_stat(5), cutime and cstime), so that a compiler's many short processes are counted, too. Processes of other
containers are not visible; their time is in `busy`.
"""

from __future__ import annotations

import contextlib
import glob
import operator
import os
import re
import resource
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

UNITS = {
    "seconds": "s",
    "steal": "of the CPUs' time",
    "slowdown": "of the CPUs' best speed",
    "busy": "CPUs",
    "own": "CPUs",
    "foreign": "CPUs",
    "foreign_program": "",
    "load": "processes",
    "context_switches": "",
    "interrupts": "",
    "preemptions": "",
    "retransmits": "segments",
    "timeouts": "",
    "udp_errors": "datagrams",
    "interface_errors": "frames",
    "interface_drops": "frames",
    "pause_frames": "frames",
    "frequency": "MHz",
    "throttles": "",
    "clocksource": "",
    "congestion_control": "",
}
"""Every gauge with its unit; an empty unit for a count and for a name. docs/reference/data.md explains each."""

CPU_DIRECTORY = "/sys/devices/system/cpu"
_TICKS = os.sysconf("SC_CLK_TCK")
_KERNEL_THREAD = 0x00200000  # PF_KTHREAD of Linux's include/linux/sched.h
_USER, _NICE, _SYSTEM, _IRQ, _SOFTIRQ, _STEAL = 0, 1, 2, 5, 6, 7  # places in a line `cpu` of /proc/stat, proc_stat(5)
_BUSY = (_USER, _NICE, _SYSTEM, _IRQ, _SOFTIRQ)
_WITHOUT_GUESTS = 8  # their time is part of the users' time already

_COUNTED = {
    ("Tcp:", "RetransSegs"): "retransmits",
    ("TcpExt:", "TCPTimeouts"): "timeouts",
    ("Udp:", "InErrors"): "udp_errors",
    ("Udp:", "SndbufErrors"): "udp_errors",
}
"""Returns the counters of /proc/net/snmp and /proc/net/netstat, by group and name."""


@dataclass(frozen=True)
class Usage:
    """A process, with the clock ticks that it and its ended children have used since their start."""

    name: str
    parent: int
    session: int
    cpu: int
    ticks: int


@dataclass(frozen=True)
class Look:
    """One observation: `counts` only grow, `state` are momentary values.

    `times` are the ticks of each CPU by use, and `cpus` those that the run may use; `own` are the seconds that the run
    has used, and `foreign` the processes that belong neither to the run nor to the kernel.
    """

    at: float
    times: Mapping[int, Sequence[int]]
    cpus: Collection[int]
    own: float
    foreign: Mapping[int, Usage]
    counts: Mapping[str, int]
    state: Mapping[str, float | str]


class Observer:
    """Observes the host that it runs on.

    `interfaces` are the data links; those in another network namespace are left out. `cpus` are those whose frequency
    counts, all if empty. `own` are ids of processes and sessions of the run; their descendants, this process and its
    ended children belong to the run, too. `pause_frames` reads the driver's counters of an interface, and `slowdown`,
    which is optional, the loss of speed of the run's CPUs.
    """

    def __init__(
        self,
        interfaces: Collection[str],
        cpus: Collection[int],
        own: Collection[int],
        pause_frames: Callable[[str], int | None],
        slowdown: Callable[[Collection[int]], float] | None = None,
    ) -> None:
        self.interfaces = frozenset(interfaces)
        self.own = frozenset(own)
        self._kernel_threads: set[int] = set()
        numbers: Collection[object] = cpus or ["[0-9]*"]
        self._frequencies = _files(f"{CPU_DIRECTORY}/cpu{number}/cpufreq/scaling_cur_freq" for number in numbers)
        self._throttles = _files([f"{CPU_DIRECTORY}/cpu[0-9]*/thermal_throttle/*_throttle_count"])
        self._pause_frames = pause_frames
        self._slowdown = slowdown

    def look(self) -> Look:
        """Makes an observation."""
        times, counts = _kernel_counts()
        own, foreign = self._processes()
        waited = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = sum(usage.ticks for usage in own.values()) / _TICKS + waited.ru_utime + waited.ru_stime
        cpus = {cpu for number in (os.getpid(), *own) for cpu in _affinity(number)}
        counts.update(_protocol_counts())
        counts.update(_interface_counts(self.interfaces))
        if self._throttles:
            counts["throttles"] = sum(map(_number, self._throttles))
        if pauses := [count for name in self.interfaces if (count := self._pause_frames(name)) is not None]:
            counts["pause_frames"] = sum(pauses)
        return Look(time.monotonic(), times, cpus, seconds, foreign, counts, self._state(cpus))

    def _processes(self) -> tuple[dict[int, Usage], dict[int, Usage]]:
        """Returns the run's processes except this one, and those of neither the run nor the kernel, by id."""
        found = self._usages()
        found.pop(os.getpid(), None)
        own = {number for number, usage in found.items() if {number, usage.session} & self.own}
        generation = own | {os.getpid()}
        while generation:
            generation = {number for number, usage in found.items() if usage.parent in generation} - own
            own |= generation
        foreign = {number: usage for number, usage in found.items() if number not in own}
        return {number: found[number] for number in own}, foreign

    def _usages(self) -> dict[int, Usage]:
        found = {}
        for entry in os.listdir("/proc"):
            if not entry.isdigit() or (number := int(entry)) in self._kernel_threads:
                continue
            try:
                text = Path("/proc", entry, "stat").read_text(encoding="utf-8", errors="replace")
            except (FileNotFoundError, ProcessLookupError):
                continue
            name, fields = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()
            if int(fields[6]) & _KERNEL_THREAD:
                self._kernel_threads.add(number)
                continue
            ticks = sum(map(int, fields[11:15]))
            found[number] = Usage(name, int(fields[1]), int(fields[3]), int(fields[36]), ticks)
        return found

    def _state(self, cpus: Collection[int]) -> dict[str, float | str]:
        state: dict[str, float | str] = {"load": float(_text("/proc/loadavg").split()[0])}
        if self._slowdown:
            state["slowdown"] = self._slowdown(cpus)
        if self._frequencies:
            state["frequency"] = sum(map(_number, self._frequencies)) / len(self._frequencies) / 1000
        for name, path in (
            ("clocksource", "/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            ("congestion_control", "/proc/sys/net/ipv4/tcp_congestion_control"),
        ):
            if found := _text(path):
                state[name] = found
        return state


def between(before: Look, after: Look) -> dict[str, float | str]:
    """Returns the gauges between two observations of one observer; names and units are in UNITS."""
    seconds = after.at - before.at
    times = {cpu: list(map(operator.sub, now, before.times.get(cpu, now))) for cpu, now in after.times.items()}
    of_run = [time for cpu, time in times.items() if cpu in after.cpus]
    gauges: dict[str, float | str] = {
        "seconds": seconds,
        "steal": sum(time[_STEAL] for time in of_run) / max(1, sum(map(sum, of_run))),
        "busy": sum(time[place] for time in times.values() for place in _BUSY) / _TICKS / seconds,
        "own": max(0.0, after.own - before.own) / seconds,
    }
    gauges.update(_foreign(before, after, seconds))
    gauges.update(
        {name: max(0, count - before.counts[name]) for name, count in after.counts.items() if name in before.counts}
    )
    gauges.update(after.state)
    if "slowdown" in before.state:
        gauges["slowdown"] = max(float(look.state["slowdown"]) for look in (before, after))
    return {name: round(value, 6) if isinstance(value, float) else value for name, value in gauges.items()}


def spent(before: Mapping[int, Usage], after: Mapping[int, Usage]) -> dict[int, int]:
    """Returns the ticks that each present process used in between, with those of its ended children.

    A parent that waits for a child inherits all the child's ticks; those from before the interval are subtracted. The
    ticks of a child for which no process waited are lost.
    """
    ticks = {number: usage.ticks - (before[number].ticks if number in before else 0) for number, usage in after.items()}
    for number in before.keys() - after.keys():
        heir = before[number].parent
        while heir in before and heir not in after:
            heir = before[heir].parent
        if heir in ticks:
            ticks[heir] -= before[number].ticks
    return {number: max(0, used) for number, used in ticks.items()}


def _foreign(before: Look, after: Look, seconds: float) -> dict[str, float | str]:
    """Returns how much of the run's CPUs other processes used, and the name of the largest user, if any."""
    used = spent(before.foreign, after.foreign)
    ticks = {number: time for number, time in used.items() if after.foreign[number].cpu in after.cpus}
    gauges: dict[str, float | str] = {"foreign": sum(ticks.values()) / _TICKS / seconds}
    most = max(ticks, key=lambda number: ticks[number], default=0)
    if ticks.get(most):
        gauges["foreign_program"] = re.sub(r"[^ -~]", "?", after.foreign[most].name)
    return gauges


def _affinity(number: int) -> set[int]:
    """Returns the CPUs that the threads of a process may use; empty if it has ended."""
    cpus: set[int] = set()
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for thread in os.listdir(f"/proc/{number}/task"):
            cpus |= os.sched_getaffinity(int(thread))
    return cpus


def _kernel_counts() -> tuple[dict[int, list[int]], Counter[str]]:
    """Returns the ticks of each CPU by use, and the counters of the kernel and of this process's children."""
    lines = dict(line.split(None, 1) for line in _text("/proc/stat").splitlines())
    counts = Counter(
        context_switches=int(lines["ctxt"]),
        interrupts=int(lines["intr"].split(None, 1)[0]),
        preemptions=resource.getrusage(resource.RUSAGE_CHILDREN).ru_nivcsw,
    )
    times = {
        int(name[3:]): [int(word) for word in line.split()[:_WITHOUT_GUESTS]]
        for name, line in lines.items()
        if name.startswith("cpu") and name != "cpu"
    }
    return times, counts


def _protocol_counts() -> Counter[str]:
    """Reads counters of this network namespace: a line of names before each line of numbers."""
    counts: Counter[str] = Counter()
    for path in ("/proc/self/net/snmp", "/proc/self/net/netstat"):
        lines = [line.split() for line in _text(path).splitlines()]
        for place in range(1, len(lines), 2):
            names, numbers = lines[place - 1], lines[place]
            for column, name in enumerate(names):
                if gauge := _COUNTED.get((names[0], name)):
                    counts[gauge] += int(numbers[column])
    return counts


def _interface_counts(interfaces: Collection[str]) -> Counter[str]:
    """Returns the frames of interfaces with errors, or dropped; /proc/net/dev has those of this namespace only."""
    counts: Counter[str] = Counter()
    for line in _text("/proc/self/net/dev").splitlines()[2:]:
        name, _, numbers = line.partition(":")
        if name.strip() in interfaces:
            fields = [int(word) for word in numbers.split()]
            counts["interface_errors"] += fields[2] + fields[10]
            counts["interface_drops"] += fields[3] + fields[11]
    return counts


def _files(patterns: Iterable[str]) -> list[str]:
    return [path for pattern in patterns for path in sorted(glob.glob(pattern))]


def _text(path: str) -> str:
    """Returns the text of a file, empty if it is missing or unreadable."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _number(path: str) -> int:
    text = _text(path)
    return int(text) if text.isdigit() else 0
