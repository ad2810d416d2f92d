# SPDX-License-Identifier: BSD-2-Clause
"""CPython's own tests pass on the stack, except for those that fail natively, too."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.stack import cpython
from tests.stack.topology import UID, Topology


def natively(topology: Topology, suite: str, tests: set[str]) -> str:
    """The report of some tests on a Linux host, as the same user."""
    child = topology.start("left", *cpython.command(suite, tests), log="native.log", uid=UID)
    child.wait(timeout=cpython.HANG_SECONDS)
    return topology.log("native.log")


def check(topology: Topology, suite: str, only: Iterable[str] = ()) -> None:
    """Run a suite on the stack, and natively those of its tests that failed there."""
    child = topology.boot({}, cpython.command(suite, only))
    status = child.wait(timeout=cpython.HANG_SECONDS + 60)
    report = topology.log("boot.log")
    failed = cpython.failures(report)
    assert "\nTests result: " in report
    assert (status == 0) == (not failed), report
    assert failed <= cpython.failures(natively(topology, suite, failed) if failed else ""), report


@pytest.mark.parametrize("suite", cpython.SUITES)
def test_a_suite_passes(topology: Topology, suite: str) -> None:
    check(topology, suite, cpython.SUITES[suite])


@pytest.mark.thorough
@pytest.mark.parametrize("suite", [suite for suite, gate in cpython.SUITES.items() if gate])
def test_all_of_a_suite_passes(topology: Topology, suite: str) -> None:
    check(topology, suite)
