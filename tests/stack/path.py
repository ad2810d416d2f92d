# SPDX-License-Identifier: BSD-2-Clause
"""`./dev bench path [KNOB=VALUE ...]`: what a small message executes, from the call that sends it to that of the next.

How fast a message is depends on what else the machine does; what it executes hardly does.  So of each way one thread
sends messages to itself, and with all other threads of its process frozen it is stepped from instruction to instruction
(ptrace(2)): a send(), a recv(), and all that the stack and the host's libraries do meanwhile.  What the host's
kernel does is not seen.  A message takes a tenth of a second so, hence timers are far off.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from tests.stack.measures import cputimes
from tests.stack.topology import Installed, run

BOOTS = 2  # ports are random: now and then each message of a boot executes 500 instructions more
BATCHES, MESSAGES = 4, 5
PAUSE = 0.05  # seconds between one batch and the next
NAME = 52  # columns
LINE, PAGE = 64, 4096
LONGEST = 15  # bytes of an instruction (Intel SDM, volume 2, section 2.3.11)
WARM_UP = 0.5  # seconds of a CPU until buffers and caches are full
PATIENCE = 30  # seconds for the messages of a row; three are enough
SECONDS = 60  # that the load runs for unless it is ended

# linux/ptrace.h; a register's place is that of sys/user.h.
PEEKUSER, CONTINUE, SINGLESTEP, SEIZE, INTERRUPT = 3, 7, 9, 0x4206, 0x4207
RIP = 16 * 8
WAIT_THREAD = 0x40000000  # __WALL

TCP = {
    "if.mem0.inet": "10.97.0.1/24",
    "if.mem0.wire": "mirror",
    "if.mem0.offload": "2",
    "net.inet.tcp.delacktime": "500",
    "net.inet.tcp.rexmit_min": "60000",
    "net.inet.tcp.rexmit_initial": "60000",
}
TCP6 = {**TCP, "if.mem0.inet6": "2001:db8:97::1/64", "net.inet6.ip6.dad_count": "0"}


class Way(NamedTuple):
    """Tunables of the stack, the address that the load is given, and how knobs begin that do not act on it."""

    tunables: Mapping[str, str]
    address: str
    others: tuple[str, ...]


WAYS = {
    "TCP": Way(TCP, "10.97.0.7", ("unix.",)),
    "TCP, IPv6": Way(TCP6, "2001:db8:97::7", ("unix.",)),
    "UNIX": Way({"unix.sockets": "stack"}, "{directory}/socket", ("net.inet.", "if.")),
}


class Cost(NamedTuple):
    """Of a message: instructions, lines and pages of code that they are in, and branches that were taken."""

    instructions: float
    lines: float
    pages: float
    branches: float


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="./dev bench path", description=__doc__)
    parser.add_argument("knobs", metavar="KNOB=VALUE", nargs="*", type=setting, help="also with this in loader.conf")
    chosen = parser.parse_args(argv)
    if platform.machine() != "x86_64":
        sys.exit("path: only an x86-64 is stepped here")
    installed = Installed()
    try:
        print(f"{'a message':{NAME}}{'instructions':>14}{'lines of code':>15}{'pages':>7}{'branches taken':>16}")
        for name, address, tunables in rows(chosen.knobs):
            it = measure(installed.prefix, address, tunables)
            counts = f"{it.instructions:14.0f}{it.lines:15.0f}{it.pages:7.0f}{it.branches:16.0f}"
            print(f"{name:{NAME}}{counts}", flush=True)
    finally:
        installed.remove()
    return 0


def setting(text: str) -> tuple[str, str]:
    """A knob and its value."""
    knob, equals, value = text.partition("=")
    if not knob or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is no KNOB=VALUE, as net.inet.tcp.input=giant is")
    return knob, value


def rows(knobs: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str, dict[str, str]]]:
    """The name, address and tunables of each: every way as it is, then with each knob that may act on it."""
    for name, way in WAYS.items():
        yield name, way.address, dict(way.tunables)
        for knob, value in knobs:
            if not knob.startswith(way.others):
                yield f"{name}, {knob}={value}", way.address, {**way.tunables, knob: value}


def measure(prefix: Path, address: str, tunables: Mapping[str, str]) -> Cost:
    """The medians of some messages, of the batch of any boot that had the fewest instructions.

    If a thread is frozen while it waits for a lock that the message takes, each message wakes it up in vain.
    """
    return min(_measure_boot(prefix, address, tunables) for _ in range(BOOTS))


def _measure_boot(prefix: Path, address: str, tunables: Mapping[str, str]) -> Cost:
    with tempfile.TemporaryDirectory(prefix="path-") as directory:
        conf = Path(directory) / "loader.conf"
        conf.write_text("".join(f'{name}="{value}"\n' for name, value in tunables.items()), encoding="ascii")
        to = address.format(directory=directory)
        load = [f"{prefix}/bin/tcpload", "alone", "rr", "-t", str(SECONDS), to, "5999"]
        with _running(f"{prefix}/bin/bootstack", "-c", str(conf), "--", *load) as pid:
            return min(cost(batch) for batch in _batches(pid, _entry(pid, prefix)))


def cost(messages: Sequence[Sequence[int]]) -> Cost:
    """Of the addresses of what each message executed, in order."""
    return Cost(
        *(
            statistics.median(count(message) for message in messages)
            for count in (
                len,
                lambda steps: len({address // LINE for address in steps}),
                lambda steps: len({address // PAGE for address in steps}),
                lambda steps: sum(not 0 < after - before <= LONGEST for before, after in pairwise(steps)),
            )
        )
    )


@contextmanager
def _running(*words: str) -> Iterator[int]:
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as said,
        subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=said) as child,
    ):
        try:
            until = time.monotonic() + SECONDS
            while child.poll() is None and max(cputimes(child.pid).values()) < WARM_UP:
                if time.monotonic() > until:
                    sys.exit(f"path: {words[0]} has had no {WARM_UP} s of a CPU in {SECONDS} s")
                time.sleep(0.05)
            if child.poll() is not None:
                said.seek(0)
                sys.exit(f"path: {words[0]} ended with {child.returncode}:\n{said.read()}")
            yield child.pid
        finally:
            child.kill()


def _entry(pid: int, prefix: Path) -> int:
    """The address of the library's send()."""
    library = (prefix / "lib" / "libstack.so").resolve()
    symbols = (line.split() for line in run("nm", "-D", "--defined-only", str(library)).splitlines())
    offset = next(int(address, 16) for address, _, name in symbols if name == "send")
    maps = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8").splitlines()
    return offset + min(int(line.split("-")[0], 16) for line in maps if line.endswith(str(library)))


def _batches(pid: int, entry: int) -> list[list[list[int]]]:
    """The addresses of what each message executed: of the busiest thread, while all others are frozen."""
    threads = cputimes(pid)
    busiest = max(threads, key=lambda thread: threads[thread])
    found = []
    with _traced(pid, threads), _patience(), _on_cpus_of(busiest):
        for _ in range(BATCHES):
            with _frozen(threads):
                found.append(_steps(busiest, entry, MESSAGES))
            time.sleep(PAUSE)
    return found


def _steps(thread: int, entry: int, messages: int) -> list[list[int]]:
    """From one entry to the next are those of a message."""
    found: list[list[int]] = []
    while len(found) <= messages:
        address = _ptrace(PEEKUSER, thread, RIP) & (1 << 64) - 1
        if address == entry:
            found.append([])
        if found:
            found[-1].append(address)
        _ptrace(SINGLESTEP, thread)
        os.waitpid(thread, WAIT_THREAD)
    return found[:-1]


@contextmanager
def _traced(pid: int, threads: Iterable[int]) -> Iterator[None]:
    """At the end the process is killed, and is seen to end when each thread has been."""
    for thread in threads:
        _ptrace(SEIZE, thread)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGKILL)
        for thread in threads:
            while thread != pid and os.WIFSTOPPED(os.waitpid(thread, WAIT_THREAD)[1]):
                pass


@contextmanager
def _frozen(threads: Iterable[int]) -> Iterator[None]:
    for thread in threads:
        _ptrace(INTERRUPT, thread)
        os.waitpid(thread, WAIT_THREAD)
    yield
    for thread in threads:
        _ptrace(CONTINUE, thread)


@contextmanager
def _on_cpus_of(thread: int) -> Iterator[None]:
    """A step takes a third of the time there."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, os.sched_getaffinity(thread))
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def _patience() -> Iterator[None]:
    def give_up(*_: object) -> None:
        sys.exit(f"path: no message in {PATIENCE} s: with these knobs it waits for another thread, which is frozen")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(PATIENCE)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes, _libc.ptrace.restype = [ctypes.c_long] * 4, ctypes.c_long


def _ptrace(request: int, thread: int, place: int = 0) -> int:
    ctypes.set_errno(0)
    value: int = _libc.ptrace(request, thread, place, 0)
    if error := ctypes.get_errno():  # a value may be -1
        raise OSError(error, f"ptrace of the load: {os.strerror(error)}")
    return value


if __name__ == "__main__":
    sys.exit(main())
