# SPDX-License-Identifier: BSD-2-Clause
"""A bridge of two TAP devices: the hosts behind them are in one network, and so is the stack."""

from __future__ import annotations

import re

import pytest

from tests.stack.test_programs import check_iperf3, iperf3
from tests.stack.topology import Topology

RIGHT = "10.99.0.3"
BRIDGE = {
    "if.tap0.inet": "0.0.0.0/0",  # none: the bridge has it
    "if.tap1.offload": "2",
    "if.bridge0.members": "tap0 tap1",
    "if.bridge0.inet": "10.99.0.2/24",
    "if.bridge0.inet6": "2001:db8::2/64",
    "net.inet6.ip6.dad_count": "0",
}


def test_hosts_and_the_stack_are_in_one_network(topology: Topology) -> None:
    topology.on("right", "ip", "address", "add", f"{RIGHT}/24", "dev", "data0")
    topology.on("right", "ip", "address", "add", "2001:db8::3/64", "dev", "data0", "nodad")
    topology.boot(BRIDGE, ["iperf3", "-s", "--forceflush"])
    topology.await_line("boot.log", "listening")
    for to in (RIGHT, "2001:db8::3", "10.99.0.2", "2001:db8::2"):
        output = topology.on("left", "ping", "-n", "-c", "2", "-i", "0.3", "-s", "3000", "-W", "5", to)
        assert "2 received" in output
        assert "ttl=64" in output  # no router was passed
    topology.start("right", "iperf3", "-s", "--forceflush", log="iperf3.log")
    topology.await_line("iperf3.log", "listening")
    for to in (RIGHT, "10.99.0.2", "2001:db8::2"):
        for direction in ((), ("-R",)):
            check_iperf3(iperf3(topology, to, "-n", "50M", *direction))
    assert re.search(r"^bridge0: .*\n(.*\n)*\tmembers tap0 tap1$", topology.ask("ifconfig"), re.MULTILINE)
    members = dict(re.findall(r"^bridge0 +(\S+) +(tap\d) +\d+$", topology.ask("bridge"), re.MULTILINE))
    for host, member in (("left", "tap0"), ("right", "tap1")):
        address = topology.on(host, "cat", "/sys/class/net/data0/address").strip()
        assert members[address] == member
    assert int(topology.value("if.bridge0.stats.forwarded")) > 1000
    assert int(topology.value("if.bridge0.stats.flooded")) < 1000


def test_members_that_cannot_be_stop_the_boot(topology: Topology) -> None:
    wrong = {
        "if.tap1.offload": ("0", "differ in mtu or offload"),
        "if.tap1.inet": ("10.99.1.2/24", "'tap1' has an address"),
        "if.bridge0.members": ("tap0 tap7", "'tap7' must be an Ethernet interface"),
    }
    for name, (value, reason) in wrong.items():
        with pytest.raises(AssertionError, match=reason):
            topology.boot({**BRIDGE, name: value})
    with pytest.raises(AssertionError, match=r"only bridges \(bridge0\) have a members"):
        topology.boot({**BRIDGE, "if.tap0.members": "tap1"})
