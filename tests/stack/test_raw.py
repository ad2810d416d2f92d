# SPDX-License-Identifier: BSD-2-Clause
"""Debian's ping and traceroute on the stack, towards Linux: by ping sockets, raw sockets and errors of datagrams."""

from __future__ import annotations

import re
import shutil

import pytest

from tests.stack.test_programs import finish
from tests.stack.topology import Topology

BOOT = {
    "if.tap0.inet6": "2001:db8::2/64",
    "net.inet6.ip6.dad_count": "0",
    "route.default": "10.99.0.1",
    "route6.default": "2001:db8::1",
}


def _without_privileges(topology: Topology, program: str) -> str:
    """A copy of a program without its capabilities, because with them the loader would not preload the stack."""
    found = shutil.which(program)
    assert found is not None
    copy = topology.directory / program
    shutil.copy(found, copy)
    copy.chmod(0o755)
    return str(copy)


def _run(topology: Topology, tunables: dict[str, str], *argv: str) -> str:
    child = topology.boot({**BOOT, **tunables}, argv)
    return finish(topology, child, "boot.log")


@pytest.mark.parametrize("tunables", [{}, {"net.inet.raw.ping": "0", "net.inet.raw.sockets": "1"}], ids=["ping", "raw"])
@pytest.mark.parametrize("to", ["10.99.0.1", "2001:db8::1"])
def test_ping(topology: Topology, tunables: dict[str, str], to: str) -> None:
    ping = _without_privileges(topology, "ping")
    output = _run(topology, tunables, ping, "-n", "-c", "3", "-i", "0.2", "-s", "2000", to)
    assert "3 packets transmitted, 3 received" in output


def test_ping_reports_a_host_that_does_not_answer(topology: Topology) -> None:
    topology.on("left", "sysctl", "-qw", "net.ipv4.ip_forward=1")
    topology.on("left", "ip", "route", "add", "unreachable", "10.55.0.0/16")
    ping = _without_privileges(topology, "ping")
    with pytest.raises(AssertionError, match="gave 1"):
        _run(topology, {}, ping, "-n", "-c", "1", "-W", "5", "10.55.0.1")
    assert re.search(r"From 10\.99\.0\.1 .*Destination Host Unreachable", topology.log("boot.log"))


def test_ping_is_refused_where_nobody_may(topology: Topology) -> None:
    ping = _without_privileges(topology, "ping")
    with pytest.raises(AssertionError, match="gave 2"):
        _run(topology, {"net.inet.raw.ping": "0"}, ping, "-c", "1", "10.99.0.1")
    assert "Operation not permitted" in topology.log("boot.log")


@pytest.mark.parametrize("method", [(), ("-I",)], ids=["udp", "icmp"])
@pytest.mark.parametrize(("to", "hop"), [("10.99.7.1", "10.99.0.1"), ("2001:db8:7::1", "2001:db8::1")])
def test_traceroute(topology: Topology, method: tuple[str, ...], to: str, hop: str) -> None:
    topology.on("left", "sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1")
    topology.on("left", "ip", "link", "add", "far", "type", "veth", "peer", "name", "data1", "netns",
                f"{topology.name}-right")  # fmt: skip
    for host, link, four, six in (
        ("left", "far", "10.99.8.1/24", "2001:db8:8::1/64"),
        ("right", "data1", "10.99.8.2/24", "2001:db8:8::2/64"),
    ):
        topology.on(host, "ip", "address", "add", four, "dev", link)
        topology.on(host, "ip", "address", "add", six, "dev", link, "nodad")
        topology.on(host, "ip", "link", "set", link, "up")
    topology.on("left", "ip", "route", "add", "10.99.7.1/32", "via", "10.99.8.2")
    topology.on("left", "ip", "route", "add", "2001:db8:7::1/128", "via", "2001:db8:8::2")
    topology.on("right", "ip", "address", "add", "10.99.7.1/32", "dev", "lo")
    topology.on("right", "ip", "address", "add", "2001:db8:7::1/128", "dev", "lo")
    topology.on("right", "ip", "route", "replace", "10.99.0.0/24", "via", "10.99.8.1")
    topology.on("right", "ip", "route", "add", "2001:db8::/64", "via", "2001:db8:8::1")
    traceroute = _without_privileges(topology, "traceroute")
    output = _run(topology, {"net.inet.raw.sockets": "1"}, traceroute, "-n", "-q", "1", "-m", "5", *method, to)
    hops = [line.split()[1] for line in output.splitlines() if line.strip()[:1].isdigit()]
    assert hops == [hop, to], output
