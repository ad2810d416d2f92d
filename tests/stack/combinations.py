# SPDX-License-Identifier: BSD-2-Clause
"""Combinations of the values of all knobs: each boots, carries traffic under loss, and passes the socket tests.

The stack itself reports the knobs and their values (`stackctl sysctl -t`), so a new one needs no edit here; only
numbers and lists need values here. A combination is a loader.conf and a choice of socket tests.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.stack.topology import Installed

SANITIZERS = ("address", "thread")
"""Builds of tests/stack/builds.py."""

# Socket tests, a few of which run with each combination. The second list has those that stack/tests/meson.build keeps
# from the thread sanitizer, or that take ten seconds with it and run there with each unix.locking alone.
TESTS = "tests"
PROGRAMS = (
    "posix_sockets posix_inet6",
    "posix_unix posix_unixpair",
    "posix_poll posix_epoll posix_urgent",
    "posix_control posix_transfer",
)
NOT_WITH_THREAD = ("posix_descriptors posix_signals", "posix_passing")
TRAFFIC = "posix_traffic"
CTL = "ctl"
REPORT = "report"  # names of the sanitizers' files, before the number of the process

# A mirror that damages packets, a source that is forwarded to a sink, and one whose packets are only received.
FLOOD = 400
SOURCE = f"to=10.9.2.2 flows=10 rate=10000 count={FLOOD}"
HARM = {f"if.mem0.impair.{harm}": "5000" for harm in ("loss", "dup", "reorder", "corrupt")}
COMMON = {
    "if.mem0.wire": "mirror", "if.mem0.inet": "10.9.0.1/24", "if.mem0.inet6": "2001:db8:9::1/64", **HARM,
    "if.mem1.inet": "10.9.1.1/24", "if.mem1.source": f"from=10.9.1.2 {SOURCE}",
    "if.mem2.inet": "10.9.2.1/24",
    "if.mem3.inet": "10.9.3.1/24", "if.mem3.source": f"from=10.9.3.2 {SOURCE}",
    "net.inet.ip.forwarding": "1", "net.inet6.ip6.dad_count": "0",
    "net.isr.defaultqlimit": "10000", "unix.sockets": "stack",
}  # fmt: skip
FAR = {"TRAFFIC_INET": "10.9.0.7", "TRAFFIC_INET6": "2001:db8:9::7"}

# Values of knobs that are not a choice among a few names.
NUMBERS = {
    "net.isr.maxthreads": ("1", "2", "-1"),
    "net.inet.tcp.pcbgroups": ("128", "3", "1"),
    "net.inet.ip.alone": ("", "udp,icmp,icmp6", "tcp"),
    "debug.needsgiant": ("", "udp"),
    "machine.spin_us": ("20", "0"),
    "lock.spin_limit": ("100", "0"),
}
LIMIT = 150  # max seconds of a program, on a busy machine
EX_CONFIG = 78  # exit status of a program that could not boot the stack

SMALL = 4  # max number of values of a number that counts as a choice

# Knobs that select no strategy, or that would keep others from having an effect.
LEFT_OUT = {
    "api.inet6_kernel": "the kernel's sockets would be tested",
    "boot_mute": "a failure must be explained",
    "debug.witness.mode": "a wrong order must end the program",
    "net.isr.direct": "another name of net.isr.dispatch",
    "net.isr.enable": "another name of net.isr.dispatch",
    "unix.sockets": "the kernel's sockets would be tested",
}
# Real-time threads on the CPUs of all other tests: each is tried alone, in test_combinations.py.
REAL_TIME = {"machine.sched": ("fifo", "rr")}


def only(*values: str) -> Callable[[str], bool]:
    """The condition that a value is one of these."""
    return lambda value: value in values


def no(*values: str) -> Callable[[str], bool]:
    """The condition that a value is none of these."""
    return lambda value: value not in values


@dataclass(frozen=True)
class Refusal:
    """Values that exclude each other, and the boot's error message."""

    values: Mapping[str, Callable[[str], bool]]
    sentence: str

    def refuses(self, row: Mapping[str, str]) -> bool:
        """Return whether a row, or a part of one, has these values."""
        return all(name in row and is_it(row[name]) for name, is_it in self.values.items())


FINE_UNIX = {"unix.locking": no("giant", "single")}
FINE_UNIX_SENTENCE = r'unix\.locking="\w+" with debug\.mpsafenet="0": every socket call holds Giant'
GROUPS_THREAD = {"net.inet.tcp.pcbtable": only("groups-thread")}
# With input that shares no lock, the other message refuses ip.alone.
ALONE_SENTENCE = r"net\.inet\.ip\.alone requires one thread|the net lock is not shared"
OLD_NETISR = {"net.isr.generation": only("2005")}
REFUSALS = (
    Refusal({**OLD_NETISR, "net.isr.maxthreads": no("1")}, "the generation of 2005 has one thread; set"),
    Refusal(
        {**OLD_NETISR, "net.isr.dispatch": only("hybrid")}, "the generation of 2005 supports only direct and deferred"
    ),
    *(
        Refusal({**OLD_NETISR, f"net.isr.proto.{proto}.dispatch": only("hybrid")}, "a protocol's dispatch is hybrid")
        for proto in ("ether", "arp", "ip", "ip6")
    ),
    *(
        Refusal({**OLD_NETISR, f"net.isr.proto.{proto}.policy": no(policy)}, "has one thread and no policies")
        for proto, policy in {"ether": "source", "arp": "source", "ip": "flow", "ip6": "flow"}.items()
    ),
    Refusal({**FINE_UNIX, "debug.mpsafenet": only("0")}, FINE_UNIX_SENTENCE),
    Refusal({**FINE_UNIX, "debug.needsgiant": no("")}, FINE_UNIX_SENTENCE),
    Refusal({**FINE_UNIX, "net.inet.tcp.input": only("giant")}, FINE_UNIX_SENTENCE),
    Refusal({**OLD_NETISR, **GROUPS_THREAD}, "the netisr of 2005 has no workers"),
    Refusal({**GROUPS_THREAD, "net.inet.ip.alone": only("tcp")}, ALONE_SENTENCE),
    Refusal(
        {"net.inet.ip.alone": no(""), "net.inet.tcp.input": no("shared-socket", "shared-socket-batch")},
        "the net lock is not shared",
    ),
)


def refused(row: Mapping[str, str]) -> bool:
    """Return whether the stack should refuse to boot with this part of a row."""
    return any(refusal.refuses(row) for refusal in REFUSALS)


def parse_types(listing: str) -> dict[str, list[str]]:
    """Return the values of each tunable that is a choice, from the output of `sysctl -t`."""
    found: dict[str, list[str]] = {}
    for line in listing.splitlines():
        name, _, values = line.partition(":")
        span = re.fullmatch(r"(\d+)-(\d+)", values.strip())
        if span is None:
            found[name] = values.split()
        elif int(span[2]) - int(span[1]) < SMALL:
            found[name] = [str(value) for value in range(int(span[1]), int(span[2]) + 1)]
    return {name: values for name, values in found.items() if len(values) > 1}


def knobs_of(listing: str, defaults: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the knobs of a booted stack, the default of each first.

    A knob of an interface applies to mem0, mem1 and mem2 together; a listening program does not receive from those, but
    from mem3.
    """
    knobs: dict[str, list[str]] = {}
    choices = {**parse_types(listing), **{name: list(values) for name, values in NUMBERS.items()}}
    for name, values in choices.items():
        interface = name.startswith("if.")
        mine = "if.mem3." if name.endswith(".monitor") else "if.mem0."
        if name in COMMON or name in LEFT_OUT or (interface and not name.startswith(mine)):
            continue
        kept = [value for value in values if value not in REAL_TIME.get(name, ())]
        default = defaults.get(name, kept[0])
        knobs[name] = [default] * (default in kept) + [value for value in kept if value != default]
    return knobs


def loader_conf(row: Mapping[str, str]) -> str:
    """The loader.conf of a combination."""
    lines = dict(COMMON)
    for name, value in row.items():
        if name.startswith("if.mem0."):
            lines.update({name.replace("mem0", f"mem{index}"): value for index in range(3)})
        elif name != TESTS:
            lines[name] = value
    return "".join(f'{name}="{value}"\n' for name, value in lines.items())


class FailedError(Exception):
    """A combination failed; the text has the output."""


def ask(path: Path, request: str) -> str:
    """Return the response of the stack with this control socket."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(30)
        sock.connect(str(path))
        sock.sendall(f"{request}\n".encode())
        answer = b"".join(iter(lambda: sock.recv(1 << 16), b"")).decode()
    if not answer.startswith("ok\n"):
        raise FailedError(f"{request}: {answer}")
    return answer.removeprefix("ok\n")


@contextlib.contextmanager
def looked_at(ctl: Path) -> Iterator[None]:
    """Query the list of the stack's sockets repeatedly in the background, once the stack is up."""
    enough = threading.Event()

    def look_on() -> None:
        while not enough.wait(0.05):
            with contextlib.suppress(OSError, FailedError):
                for view in ("netstat -a", "netstat -f unix"):
                    ask(ctl, view)

    onlooker = threading.Thread(target=look_on)
    onlooker.start()
    try:
        yield
    finally:
        enough.set()
        onlooker.join()


def end_late(child: subprocess.Popen[str], ctl: Path) -> str:
    """End a program that did not end in time; return the states of the threads of its stack."""
    parts = [f"no end in {LIMIT} seconds\n"]
    for view in ("ps", "show alllocks", "show stacks", "netstat -a"):
        with contextlib.suppress(OSError, FailedError):
            parts.append(f"{view}:\n{ask(ctl, view)}")
    child.kill()
    return "".join(parts)


class Build:
    """A build of the stack with checks: its programs, its knobs, and combinations of them."""

    def __init__(self, name: str) -> None:
        self.tests = PROGRAMS if name == "thread" else (*PROGRAMS, *NOT_WITH_THREAD)
        programs = {TRAFFIC, *(program for group in self.tests for program in group.split())}
        self.name = name
        self.installed = Installed(name, [f"tests/{program}" for program in sorted(programs)])

    def _environment(self, conf: Path) -> dict[str, str]:
        """Return the environment of a program on the stack.

        Sanitizers write their reports to separate files, which are read when the program has ended, so that a report is
        complete. The thread sanitizer's runtime comes after the stack; it need not wait for ended threads.
        """
        common = f"log_path={conf.parent / REPORT}:halt_on_error=1"
        own = {
            "ASAN_OPTIONS": common,
            "UBSAN_OPTIONS": f"{common}:print_stacktrace=1",
            "TSAN_OPTIONS": f"log_path={conf.parent / REPORT}:atexit_sleep_ms=0",
        }
        if self.name == "thread":
            own["LD_PRELOAD"] = str(self.installed.build / "libstack.so")
        return {**os.environ, **own, **FAR, "STACK_CONF": str(conf)}

    def run_program(self, program: str, conf: Path, look: Callable[[], None] | None = None) -> tuple[int, str]:
        """Run a program on the stack from start to end; return its exit status and all output.

        `look` is called when the program, which is that of the traffic, is done, before it ends. Ctrl-C does not reach
        the program, so that an interrupted long test reports no failure.
        """
        log = conf.with_suffix(".log")
        wait = {} if look is None else {"TRAFFIC_WAIT": "1"}
        words: list[str] = []
        problem = ""
        with (
            log.open("w", encoding="utf-8") as errors,
            subprocess.Popen(
                [self.installed.build / "tests" / program], env={**self._environment(conf), **wait}, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, process_group=0,
            ) as child,
        ):  # fmt: skip
            assert child.stdin is not None
            assert child.stdout is not None
            late = threading.Timer(LIMIT, lambda: words.append(end_late(child, conf.parent / CTL)))
            late.start()
            try:
                for line in child.stdout:
                    words.append(line)
                    if line == "done\n" and look is not None:
                        look()
                        child.stdin.close()
            except (FailedError, OSError) as failed:
                problem = f"{failed}\n"
            finally:  # a program that is about to end reports the reason first
                child.stdin.close()
                status = child.wait()
                late.cancel()
                late.join()
        logs = [path.read_text(encoding="utf-8", errors="replace") for path in (log, *conf.parent.glob(f"{REPORT}.*"))]
        if problem:
            raise FailedError("".join([problem, *words, *logs]))
        return status, "".join([*words, *logs])

    def passes(self, program: str, conf: Path, look: Callable[[], None] | None = None) -> None:
        """Run a program that must succeed without a report of a sanitizer; raise FailedError otherwise."""
        status, output = self.run_program(program, conf, look)
        if status != 0 or any(conf.parent.glob(f"{REPORT}.*")):
            raise FailedError(f"{program} ended with {status}:\n{output}")

    def knobs(self, directory: Path) -> dict[str, list[str]]:
        """The knobs of this build, and the socket tests."""
        answers: list[str] = []
        conf, ctl = write_conf({}, directory)
        self.passes(TRAFFIC, conf, lambda: answers.extend(ask(ctl, f"sysctl {option}") for option in ("-t", "-a")))
        defaults = dict(line.split(": ", 1) for line in answers[1].splitlines())
        return {**knobs_of(answers[0], defaults), TESTS: list(self.tests)}

    def carries(self, row: Mapping[str, str], directory: Path) -> None:
        """Boot, carry and forward traffic, and pass the socket tests of the row; raise FailedError otherwise."""
        conf, ctl = write_conf(row, directory)
        with looked_at(ctl):
            self.passes(TRAFFIC, conf, lambda: await_forwarded(ctl, row))
        for program in row.get(TESTS, "").split():
            self.passes(program, conf)

    def refuses(self, row: Mapping[str, str], directory: Path, sentence: str) -> None:
        """Check that it refuses to boot, with the reason."""
        conf, _ = write_conf(row, directory)
        status, output = self.run_program(TRAFFIC, conf)
        if status != EX_CONFIG or re.search(sentence, output) is None:
            raise FailedError(f"not refused with '{sentence}' but {status}:\n{output}")


def write_conf(row: Mapping[str, str], directory: Path) -> tuple[Path, Path]:
    """Write the loader.conf of a combination, in its own directory; return it and the control socket."""
    conf, ctl = directory / "loader.conf", directory / CTL
    conf.write_text(f'{loader_conf(row)}ctl.path="{ctl}"\n', encoding="utf-8")
    return conf, ctl


def await_forwarded(ctl: Path, row: Mapping[str, str]) -> None:
    """Check that everything the sources sent was received, except packets that waited for a link address too long."""
    expected = FLOOD * (2 if row.get("if.mem3.monitor", "off") == "off" else 1)
    until = time.monotonic() + LIMIT / 2
    names = ("if.mem2.stats.opackets", "net.link.ether.arp.stats.dropped")
    while time.monotonic() < until:
        counts = [int(ask(ctl, f"sysctl {name}").split()[1]) for name in names]
        if sum(counts) >= expected:
            return
        time.sleep(0.05)
    raise FailedError(f"of {expected} packets {counts} were forwarded and dropped:\n{ask(ctl, 'netstat -s')}")
