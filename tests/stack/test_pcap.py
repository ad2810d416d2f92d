# SPDX-License-Identifier: BSD-2-Clause
"""The packets of an interface in a file."""

from __future__ import annotations

import struct
import time
from pathlib import Path

import pytest

from tests.stack.topology import Topology, run

FORWARD = {"net.inet.ip.forwarding": "1", "if.mem0.inet": "10.9.0.1/24", "if.mem1.inet": "10.9.1.1/24"}


def _packets(path: Path) -> list[bytes]:
    """Return the packets of a file, whose headers must be right."""
    data = path.read_bytes()
    assert struct.unpack_from("=IHHIIII", data) == (0xA1B23C4D, 2, 4, 0, 0, 262144, 1)
    packets, at, last = [], 24, 0.0
    while at < len(data):
        sec, nsec, kept, length = struct.unpack_from("=IIII", data, at)
        assert kept == length
        assert nsec < 10**9
        assert sec + nsec / 1e9 >= last - 1  # the wall clock may be set
        last = sec + nsec / 1e9
        packets.append(data[at + 16 : at + 16 + kept])
        at += 16 + kept
    assert abs(time.time() - last) < 3600
    return packets


def test_what_is_forwarded_is_kept(topology: Topology) -> None:
    kept = topology.directory / "mem1.pcap"
    source = "from=10.9.0.2 to=10.9.1.2 len=100 flows=10 count=3000"
    topology.boot({**FORWARD, "if.mem0.source": source, "if.mem1.pcap": str(kept)})
    topology.await_value("if.mem1.stats.opackets", 3001)
    # One request for a link address, its reply, and the packets.
    assert topology.ask("pcap", "stop", "mem1") == "3002 packets, 0 dropped\n"
    assert kept.stat().st_mode & 0o777 == 0o600
    packets = _packets(kept)
    assert [packet[12:14] for packet in packets[:2]] == [b"\x08\x06"] * 2
    sources = [struct.unpack_from("!H", packet, 34)[0] for packet in packets[2:]]
    assert sources == [1024 + n % 10 for n in range(3000)]
    assert {len(packet) for packet in packets[2:]} == {114}
    assert {packet[22] for packet in packets[2:]} == {63}  # one hop less to live


def test_it_starts_and_stops_while_packets_pass(topology: Topology) -> None:
    topology.boot({})
    for name in ("first.pcap", "second.pcap"):
        kept = topology.directory / name
        topology.ask("pcap", "start", "tap0", str(kept), "1")
        topology.on("left", "ping", "-n", "-c", "20", "-i", "0.01", "-s", "1000", "10.99.0.2")
        output = topology.ask("pcap", "stop", "tap0")
        packets = _packets(kept)
        assert output == f"{len(packets)} packets, 0 dropped\n"
        assert sum(len(packet) == 1042 and packet[12:14] == b"\x08\x00" for packet in packets) == 40


def test_the_file_has_an_end(topology: Topology) -> None:
    topology.boot({})
    kept = topology.directory / "full.pcap"
    topology.ask("pcap", "start", "tap0", str(kept), "1")
    topology.on("left", "ping", "-n", "-c", "60", "-i", "0.002", "-s", "20000", "10.99.0.2")
    dropped = int(topology.ask("pcap", "stop", "tap0").split()[2])
    assert dropped > 0
    assert (1 << 20) - 70000 < kept.stat().st_size <= (1 << 20) + 24
    _packets(kept)


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        ("pcap start tap0", "usage: pcap start INTERFACE FILE"),
        ("pcap start tap7 /tmp/x", "no interface 'tap7'"),
        ("pcap start tap0 here.pcap", "not an absolute path"),
        ("pcap start tap0 /nowhere/x.pcap", "/nowhere/x.pcap: No such file or directory"),
        ("pcap start tap0 /dev/null 0", "'0' is not a number of megabytes"),
        ("pcap stop", "usage: pcap stop INTERFACE"),
        ("pcap stop tap0", "tap0 is not being captured"),
    ],
)
def test_what_cannot_be_is_explained(topology: Topology, request_: str, reason: str) -> None:
    topology.boot({})
    with pytest.raises(AssertionError, match=reason):
        topology.ask(*request_.split())


def test_a_link_is_not_followed(topology: Topology) -> None:
    topology.boot({})
    run("ln", "-s", "/etc/passwd", f"{topology.directory}/link")
    with pytest.raises(AssertionError, match="Too many levels of symbolic links"):
        topology.ask("pcap", "start", "tap0", f"{topology.directory}/link")
