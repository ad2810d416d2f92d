# SPDX-License-Identifier: BSD-2-Clause
"""stackctl top: the refreshed activity of a stack."""

from __future__ import annotations

import re

import pytest

from tests.stack.topology import Topology, run

SOURCE = {"if.mem0.inet": "10.9.0.1/24", "if.mem0.source": "from=10.9.0.2 to=10.9.0.1 rate=5000 cold=1"}


def test_it_shows_threads_and_counters_that_move(topology: Topology) -> None:
    topology.boot({**SOURCE, "machine.spin_us": "0"})
    output = topology.ask("top", "-b", "-n", "2", "-d", "1")
    assert len(idle := re.findall(r"^receive threads: 2, (\S+) % idle$", output, re.MULTILINE)) == 2
    assert all(0 < float(percent) < 100 for percent in idle)
    assert len(rates := re.findall(r"^received: (\S+) kpps$", output, re.MULTILINE)) == 2
    # A late source catches up.
    assert all(1 < float(rate) < 50 for rate in rates)
    assert len(re.findall(r"^CPU time: \d+\.\d ns a packet$", output, re.MULTILINE)) == 2
    assert len(re.findall(r"^cache misses: (?:\d|not available \()", output, re.MULTILINE)) == 2
    assert re.search(r"^ +\d+\.\d  intr: source$", output, re.MULTILINE)
    for counter in ("if.mem0.stats.ipackets", "net.inet.udp.stats.noport", "mbuf.allocs", r"netisr.\d.ip.Direct"):
        assert re.search(rf"^ +\d+\.\d +\d+  {counter}$", output, re.MULTILINE), output
    assert "net.inet.tcp" not in output


def test_a_source_keeps_to_its_rate_and_ends_on_request(topology: Topology) -> None:
    child = topology.boot({**SOURCE, "if.mem0.source": "from=10.9.0.2 to=10.9.0.1 rate=1"})
    assert int(topology.value("if.mem0.stats.ipackets")) < 30
    assert topology.stop(child) == 0


@pytest.mark.parametrize("words", [("-n", "-1"), ("-d", "0"), ("-d", "x"), ("-x",), ("now",)])
def test_it_explains_itself(topology: Topology, words: tuple[str, ...]) -> None:
    topology.boot({})
    with pytest.raises(AssertionError, match=r"(?s)gave 64: .*usage: stackctl -s SOCKET top"):
        topology.ask("top", *words)


def test_no_stack_no_top(topology: Topology) -> None:
    with pytest.raises(AssertionError, match="check that the stack runs"):
        run(f"{topology.installed.prefix}/bin/stackctl", "-s", "/nowhere", "top", "-b", "-n", "1")
