# SPDX-License-Identifier: BSD-2-Clause
"""Monitor mode, deferred transmit, prefetch and the recycling of buffers: the knobs of the forwarding experiments."""

from __future__ import annotations

import itertools
import sys
import time

import pytest

from tests.stack.topology import DRIVERS, PATIENCE, TAP, Driver, Topology

RIGHT = "10.99.1.1"
SOURCE = "from=10.9.0.2 to=10.9.1.2 flows=10 cold=1 rate=20000"
BUFFERS = 4  # max buffers that the receive thread of tap0 holds


def _udp(topology: Topology, datagrams: int, to: str) -> None:
    code = f"import socket; s = socket.socket(2, 2); [s.sendto(b'x' * 18, ('{to}', 9)) for _ in range({datagrams})]"
    topology.on("left", sys.executable, "-c", code)


def _count(topology: Topology, *names: str) -> int:
    return sum(int(topology.value(name)) for name in names)


@pytest.mark.parametrize("place", ["header", "top", "queue"])
def test_a_monitor_is_switched_on_and_off_while_packets_come(topology: Topology, place: str) -> None:
    topology.boot({"if.tap1.inet": "10.99.1.2/24", "net.inet.ip.forwarding": "1"})
    pcap = topology.directory / "tap0.pcap"
    assert "3 received" in topology.on("left", "ping", "-n", "-c", "3", "-i", "0.5", RIGHT)
    assert topology.ask("sysctl", f"if.tap0.monitor={place}") == f"if.tap0.monitor: {place}\n"
    topology.ask("pcap", "start", "tap0", str(pcap))
    before = {name: int(topology.value(name)) for name in ("net.inet.ip.stats.total", "if.tap0.stats.ipackets")}
    _udp(topology, 50, RIGHT)
    topology.await_value("if.tap0.stats.ipackets", before["if.tap0.stats.ipackets"] + 50)
    assert int(topology.ask("pcap", "stop", "tap0").split()[0]) >= 50
    assert int(topology.value("net.inet.ip.stats.total")) == before["net.inet.ip.stats.total"]
    topology.ask("sysctl", "if.tap0.monitor=off")
    assert "3 received" in topology.on("left", "ping", "-n", "-c", "3", "-i", "0.5", RIGHT)


@pytest.mark.parametrize(
    ("fast", "transmit", "prefetch", "recycle"),
    list(itertools.product("01", ("inline", "deferred"), "01", ("lifo", "fifo"))),
)
def test_every_combination_forwards_every_packet(
    topology: Topology, fast: str, transmit: str, prefetch: str, recycle: str
) -> None:
    dispatch = "direct" if fast == "1" else "deferred"
    topology.boot({
        "net.inet.ip.forwarding": "1", "net.inet.ip.fastforwarding": fast, "net.isr.dispatch": dispatch,
        "net.isr.defaultqlimit": "10000", "net.isr.maxqlimit": "10000",
        "net.prefetch": prefetch, "kern.mbuf.recycle": recycle,
        "if.mem0.inet": "10.9.0.1/24", "if.mem0.source": f"{SOURCE} count=3000",
        "if.mem1.inet": "10.9.1.1/24", "if.mem1.transmit": transmit,
    })  # fmt: skip
    # The request for a link address is one more; only some of the packets may wait for its reply.
    until = time.monotonic() + PATIENCE
    while (
        _count(topology, "if.mem1.stats.opackets", "net.link.ether.arp.stats.dropped") < 3001
        or int(topology.value("mbuf.outstanding")) > BUFFERS
    ):
        assert time.monotonic() < until, topology.ask("netstat", "-s")
        time.sleep(0.02)


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.name)
def test_a_transmit_thread_serves_each_driver(topology: Topology, driver: Driver) -> None:
    topology.prepare(driver)
    links = {**driver.address(0), **driver.address(1)}
    modes = {f"if.{driver.interface}{index}.transmit": "deferred" for index in range(2)}
    topology.boot({**links, **modes, "net.inet.ip.forwarding": "1", "net.prefetch": "1"}, driver=driver)
    # With a deadline ping sends until it has fifty replies; without, it does not wait for a late last one.
    output = topology.on("left", "ping", "-n", "-c", "50", "-w", "60", "-i", "0.002", "-s", "1200", RIGHT)
    assert "50 received" in output
    if driver is TAP:
        assert f"swi: tx {driver.interface}1" in topology.ask("ps")


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("if.tap0.monitor", "loud", "'loud' is none of off header top queue"),
        ("if.tap0.transmit", "later", "'later' is none of inline deferred"),
        ("if.lo0.monitor", "top", "only devices .* have a monitor"),
        ("kern.mbuf.recycle", "random", "'random' is none of lifo fifo"),
        ("net.prefetch", "2", "not a number from 0 to 1"),
    ],
)
def test_what_cannot_be_is_explained(topology: Topology, name: str, value: str, reason: str) -> None:
    with pytest.raises(AssertionError, match=reason):
        topology.boot({name: value})


def test_transmit_is_chosen_at_boot(topology: Topology) -> None:
    topology.boot({})
    with pytest.raises(AssertionError, match="can only be set at boot"):
        topology.ask("sysctl", "if.tap0.transmit=deferred")
