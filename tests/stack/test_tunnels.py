# SPDX-License-Identifier: BSD-2-Clause
"""gif and gre interfaces over either family, with TCP of both families of a Linux host through them."""

from __future__ import annotations

import re

import pytest

from tests.stack.test_programs import check_iperf3, iperf3, script
from tests.stack.topology import PYTHON, Topology

OUTER = {4: ("10.99.0.2", "10.99.0.1"), 6: ("2001:db8::2", "2001:db8::1")}
INNER = {4: ("10.50.0.1", "10.50.0.2"), 6: ("2001:db8:50::1", "2001:db8:50::2")}
HEADERS = {4: 20, 6: 40}
KEY = 42


def _boot(topology: Topology, kind: str, outer: int, program: list[str]) -> None:
    """The stack at one end of the tunnel, and at the other the left host with its device tun0."""
    ours, theirs = OUTER[outer]
    mtu = 1500 - HEADERS[outer] - (8 if kind == "gre" else 0)
    topology.start("left", PYTHON, script(topology, "tunnel_peer.py"), kind, theirs, ours,
                   *([str(KEY)] if kind == "gre" else []), log="peer.log")  # fmt: skip
    topology.await_line("peer.log", "up")
    topology.on("left", "ip", "link", "set", "tun0", "mtu", str(mtu), "up")
    topology.on("left", "ip", "address", "add", f"{INNER[4][1]}/24", "dev", "tun0")
    topology.on("left", "ip", "address", "add", f"{INNER[6][1]}/64", "dev", "tun0", "nodad")
    tunables = {
        "net.inet6.ip6.dad_count": "0",
        "if.tap0.inet6": f"{OUTER[6][0]}/64",
        f"if.{kind}0.tunnel": f"{ours} {theirs}",
        f"if.{kind}0.inet": f"{INNER[4][0]}/24",
        f"if.{kind}0.inet6": f"{INNER[6][0]}/64",
        **({"if.gre0.key": str(KEY)} if kind == "gre" else {}),
    }
    topology.boot(tunables, program)
    assert re.search(
        rf"^{kind}0: .*mtu {mtu} .*\n(.*\n)*\ttunnel {ours} -> {theirs} ", topology.ask("ifconfig"), re.MULTILINE
    )


@pytest.mark.parametrize("outer", [4, 6])
@pytest.mark.parametrize("kind", ["gif", "gre"])
def test_tcp_of_both_families_passes_a_tunnel(topology: Topology, kind: str, outer: int) -> None:
    _boot(topology, kind, outer, ["iperf3", "-s", "--forceflush"])
    topology.await_line("boot.log", "listening")
    for inner in (4, 6):
        to = INNER[inner][0]
        assert "2 received" in topology.on("left", "ping", "-n", "-c", "2", "-i", "0.3", "-s", "3000", "-W", "5", to)
        for direction in ((), ("-R",)):
            check_iperf3(iperf3(topology, to, "-n", "4M", *direction))


def test_what_is_no_tunnel_stops_the_boot(topology: Topology) -> None:
    wrong = {
        "10.99.0.2": "must be two addresses of one family",
        "10.99.0.2 2001:db8::1": "must be two addresses of one family",
        "10.99.0.2 10.99.0.2": "must be two addresses of one family",
        "10.99.0.77 10.99.0.1": "gif0: the first address of its tunnel must be local",
    }
    for ends, reason in wrong.items():
        with pytest.raises(AssertionError, match=reason):
            topology.boot({"if.gif0.tunnel": ends})
    with pytest.raises(AssertionError, match=r"only tunnels \(gif0, gre0\) have a tunnel"):
        topology.boot({"if.tap0.tunnel": "10.99.0.2 10.99.0.1"})
    with pytest.raises(AssertionError, match="key '7': only gre has one"):
        topology.boot({"if.gif0.tunnel": "10.99.0.2 10.99.0.1", "if.gif0.key": "7"})
