# SPDX-License-Identifier: BSD-2-Clause
"""A stack that is built for one CPU has no lock instructions, stays on one CPU, and works."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

import pytest

from tests.stack.test_router import ROUTER, send_a_stream
from tests.stack.test_strategies import HARM, TWO_CPUS, cpus_of, refusal_of_two_cpus, stack_threads
from tests.stack.topology import Installed, Topology, run

TESTS = ("lock-adaptive", "lock-spin", "netisr-2005", "netisr-2009-workers", "giant", "churn")
PROGRAMS = ("tests/test_lock", "tests/test_netisr", "tests/test_giant", "tests/test_churn")

# The prefix, and XCHG with memory, which has the same effect without it.
LOCKED = re.compile(r"\t(lock |xchg .*\()")


@pytest.fixture(scope="module")
def up() -> Iterator[Installed]:
    """The build for one CPU, installed."""
    build = Installed("up", PROGRAMS)
    yield build
    build.remove()


@pytest.fixture
def network(up: Installed) -> Iterator[Topology]:
    """Hosts around it."""
    with Topology(up) as hosts:
        yield hosts


def locked_instructions(build: Installed) -> int:
    """The number of the stack's instructions that lock the bus, or a cache line."""
    code = run("objdump", "-d", "--no-show-raw-insn", str(build.prefix / "lib" / "libstack.so"))
    return sum(1 for line in code.splitlines() if LOCKED.search(line))


def test_it_has_no_lock_instructions(installed: Installed, up: Installed) -> None:
    assert locked_instructions(installed) > 100
    assert locked_instructions(up) == 0


def test_its_parts_work(up: Installed) -> None:
    up.meson("test", "-C", str(up.build), "--no-rebuild", "--print-errorlogs", *TESTS)


def test_a_stream_arrives_whole(network: Topology) -> None:
    network.boot({**ROUTER, **HARM, "net.isr.dispatch": "deferred"})
    send_a_stream(network)


def test_the_program_is_on_its_cpu(network: Topology) -> None:
    first = str(min(os.sched_getaffinity(0)))
    child = network.boot({}, ["netserver", "-D", "-f", "-4"])
    network.await_line("boot.log", "Starting netserver")
    assert "built for one" in network.log("boot.log")
    assert {cpus_of(task) for task in stack_threads(child.pid).values()} == {first}
    report = network.on("left", "netperf", "-H", "10.99.0.2", "-t", "TCP_CRR", "-l", "1", "-P", "0", "-v", "0")
    assert float(report.split()[-1]) > 0


def test_it_refuses_several_cpus(network: Topology) -> None:
    with pytest.raises(AssertionError, match=refusal_of_two_cpus("a stack built with -Dup=true")):
        network.boot({"machine.cpus": TWO_CPUS})
