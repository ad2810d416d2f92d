# SPDX-License-Identifier: BSD-2-Clause
"""`./dev bench path [KNOB=VALUE ...]`: the instructions of a small message, from one send() to the next.

The speed of a message depends on other load of the machine; its instructions hardly do. So for each path one thread
sends messages to itself, and with all other threads of its process frozen it is single-stepped (ptrace(2)): a send(), a
recv(), and all code of the stack and the host's libraries in between. The host's kernel is not visible. A message takes
a tenth of a second this way, so timers are set far off.
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

BOOTS = 2  # ports are random: now and then each message of a boot executes 500 more instructions
BATCHES, MESSAGES = 4, 5
PAUSE = 0.05  # seconds between one batch and the next
NAME = 52  # columns
LINE, PAGE = 64, 4096
LONGEST = 15  # max bytes of an instruction (Intel SDM, volume 2, section 2.3.11)
WARM_UP = 0.5  # CPU seconds until buffers and caches are full
PATIENCE = 30  # max seconds for the messages of a row; three are enough
SECONDS = 60  # max run time of the load

# linux/ptrace.h; the offset of a register is that of sys/user.h.
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
    """Tunables of the stack, the address of the load, and prefixes of knobs that have no effect on it."""

    tunables: Mapping[str, str]
    address: str
    others: tuple[str, ...]


WAYS = {
    "TCP": Way(TCP, "10.97.0.7", ("unix.",)),
    "TCP, IPv6": Way(TCP6, "2001:db8:97::7", ("unix.",)),
    "UNIX": Way({"unix.sockets": "stack"}, "{directory}/socket", ("net.inet.", "if.")),
}


class Cost(NamedTuple):
    """The costs of a message: instructions, their lines and pages of code, and taken branches."""

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
    """Return the name, address and tunables of each row: every path by default, then with each knob that may affect
    it.
    """
    for name, way in WAYS.items():
        yield name, way.address, dict(way.tunables)
        for knob, value in knobs:
            if not knob.startswith(way.others):
                yield f"{name}, {knob}={value}", way.address, {**way.tunables, knob: value}


def measure(prefix: Path, address: str, tunables: Mapping[str, str]) -> Cost:
    """Return the medians of some messages, of the batch of any boot that had the fewest instructions.

    If a thread is frozen while it waits for a lock that the message takes, each message wakes it without effect.
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
    """Return the costs from the addresses of each message's instructions, in order."""
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
        tempfile.TemporaryFile("w+", encoding="utf-8") as errors,
        subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=errors) as child,
    ):
        try:
            until = time.monotonic() + SECONDS
            while child.poll() is None and max(cputimes(child.pid).values()) < WARM_UP:
                if time.monotonic() > until:
                    sys.exit(f"path: {words[0]} has had no {WARM_UP} s of a CPU in {SECONDS} s")
                time.sleep(0.05)
            if child.poll() is not None:
                errors.seek(0)
                sys.exit(f"path: {words[0]} ended with {child.returncode}:\n{errors.read()}")
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
    """Return the instruction addresses of each message: of the busiest thread, while all others are frozen."""
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
    """The addresses from one entry of send() to the next belong to a message."""
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
    """At the end the process is killed, and has ended when each thread was reaped."""
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
