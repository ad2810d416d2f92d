# SPDX-License-Identifier: BSD-2-Clause
"""docs/reference/stack-limits.md names tunables and counters that a booted stack has, and tests that exist."""

from __future__ import annotations

import re

from tests.stack.builds import ROOT
from tests.stack.topology import Topology

DOCUMENT = ROOT / "docs" / "reference" / "stack-limits.md"
TESTS = ROOT / "stack" / "tests"
VARIABLE = re.compile(r"`((?:net|if|kern)\.[^`\"=]+)")
"""A name of a sysctl in a cell, without a value."""


def rows() -> list[list[str]]:
    """The cells of each row of the document's tables."""
    lines = DOCUMENT.read_text(encoding="utf-8").splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]


def test_each_tunable_and_counter_exists(topology: Topology) -> None:
    topology.boot({"if.tap0.inet6": "2001:db8::2/64"})
    names = {line.partition(": ")[0] for line in topology.ask("sysctl", "-a").splitlines()}
    # Only a bridge has this counter; test_bridge.c reads it.
    names.add("if.tap0.stats.full")
    named = [name.replace("<name>", "tap0") for row in rows() for cell in row for name in VARIABLE.findall(cell)]
    assert len(named) > 30
    assert [name for name in named if name not in names] == []


def test_each_test_exists() -> None:
    found = 0
    for table, *_, tests in (row for row in rows() if len(row) == 5):
        if table == "table":
            continue
        found += 1
        source = ""
        for word in re.findall(r"`(\w+(?:\.c)?)`", tests):
            if word.endswith(".c"):
                source = (TESTS / word).read_text(encoding="utf-8")
            else:
                assert f"TEST({word})" in source, f"{table}: no test {word}"
        assert source, f"{table} names no test"
    assert found > 20
