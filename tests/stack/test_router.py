# SPDX-License-Identifier: BSD-2-Clause
"""The stack alone as a router between two Linux hosts, as an unprivileged user."""

from __future__ import annotations

import json
import os
import re
import sys
from typing import Any

import pytest

from tests.stack.topology import PATIENCE, Topology, run

ROUTER = {"if.tap1.inet": "10.99.1.2/24", "net.inet.ip.forwarding": "1"}
RIGHT = "10.99.1.1"

# A seeded stream from host to host; both ends print its digest.
SEND = """
import hashlib, random, socket, sys
data = random.Random(1).randbytes(3_000_000)
with socket.create_connection((sys.argv[1], 5000)) as sock:
    sock.sendall(data)
print(hashlib.sha256(data).hexdigest())
"""
RECEIVE = """
import hashlib, socket
with socket.create_server(("", 5000)) as server:
    print("ready", flush=True)
    sock, _ = server.accept()
    digest = hashlib.sha256()
    while data := sock.recv(65536):
        digest.update(data)
print(digest.hexdigest())
"""


def _ping(topology: Topology, *options: str, to: str = RIGHT, count: int = 3) -> str:
    # ping waits for the last reply as long as for the next request; of many requests none is asserted to be answered.
    pause = "0.3" if count <= 3 else "0.002"
    return topology.on("left", "ping", "-n", "-c", str(count), "-i", pause, "-W", "2", *options, to, check=False)


@pytest.fixture
def router(topology: Topology) -> Topology:
    """A topology with the router booted."""
    topology.boot(ROUTER)
    return topology


def test_hosts_reach_each_other_and_the_router(router: Topology) -> None:
    assert "3 received" in _ping(router)
    assert "ttl=63" in _ping(router)
    assert "3 received" in _ping(router, to="10.99.0.2")
    assert "3 received" in _ping(router, to="10.99.1.2")


def test_fragments_are_forwarded_and_reassembled(router: Topology) -> None:
    assert "3 received" in _ping(router, "-s", "4000")
    assert router.value("net.inet.ip.stats.reassembled") == "0"
    assert "3 received" in _ping(router, "-s", "60000", to="10.99.0.2")
    assert router.value("net.inet.ip.stats.reassembled") == "3"


def test_a_hop_too_far_is_reported_by_the_router(router: Topology) -> None:
    assert "From 10.99.0.2 icmp_seq=1 Time to live exceeded" in _ping(router, "-t", "1", count=1)


def test_a_network_nobody_knows_is_unreachable(router: Topology) -> None:
    assert "From 10.99.0.2 icmp_seq=1 Destination Host Unreachable" in _ping(router, to="10.99.7.1", count=1)


def test_routes_come_and_go_while_packets_pass(router: Topology) -> None:
    assert router.ask("netstat", "-r").startswith(router.ask("route", "show"))
    router.on("right", "ip", "address", "add", "10.99.7.1/32", "dev", "lo")
    assert router.ask("route", "add", "10.99.7.0/24", RIGHT) == ""
    assert router.ask("route", "get", "10.99.7.1") == f"10.99.7.1 by {RIGHT} on tap1\n"
    assert re.search(rf"^10\.99\.7\.0/24 +{RIGHT} +tap1$", router.ask("route", "show"), re.MULTILINE)
    assert "3 received" in _ping(router, to="10.99.7.1")
    assert router.ask("route", "delete", "10.99.7.0/24") == ""
    assert "Destination Host Unreachable" in _ping(router, to="10.99.7.1", count=1)


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        ("route", "unknown request"),
        ("route add", "usage: route add DESTINATION GATEWAY"),
        ("route add 10.5.0.0 10.99.1.1", "neither default nor a subnet"),
        ("route add 10.5.0.0/33 10.99.1.1", "neither default nor a subnet"),
        ("route add 10.5.0.1/16 10.99.1.1", "has bits beyond its first 16"),
        ("route add 10.5.0.0/16 nobody", "is not the address of a gateway"),
        ("route add 10.5.0.0/16 10.5.0.1", "the gateway is not in an interface's subnet"),
        ("route add 10.99.1.0/24 10.99.1.1", "a route to this destination exists"),
        ("route delete 10.5.0.0/16", "no route has exactly this destination"),
        ("route get 8.8.8.8", "no route to 8.8.8.8"),
    ],
)
def test_a_wrong_route_is_explained(router: Topology, request_: str, reason: str) -> None:
    with pytest.raises(AssertionError, match=reason):
        router.ask(*request_.split())


def test_a_host_that_does_not_answer_is_unreachable(router: Topology) -> None:
    output = router.on("left", "ping", "-n", "-c", "1", "-W", "10", "10.99.1.77", check=False)
    assert "From 10.99.0.2 icmp_seq=1 Destination Host Unreachable" in output


def test_a_narrow_link_reports_its_mtu(topology: Topology) -> None:
    topology.boot({**ROUTER, "if.tap1.mtu": "1000"})
    output = _ping(topology, "-M", "do", "-s", "1200", count=2)
    assert "mtu = 1000" in output or "mtu=1000" in output
    assert "3 received" in _ping(topology, "-M", "dont", "-s", "1200")
    send_a_stream(topology)


def send_a_stream(topology: Topology) -> None:
    receiver = topology.start("right", sys.executable, "-c", RECEIVE, log="received.log")
    topology.await_line("received.log", "ready")
    sent = topology.on("left", sys.executable, "-c", SEND, RIGHT)
    assert receiver.wait(timeout=PATIENCE) == 0
    assert topology.log("received.log") == "ready\n" + sent


def _check_amount(report: dict[str, Any]) -> None:
    # iperf3's server stops counting at the client's message, with data still in flight.
    assert report["end"]["sum_sent"]["bytes"] >= 200_000_000
    assert report["end"]["sum_received"]["bytes"] >= 100_000_000


@pytest.mark.parametrize("dispatch", ["direct", "hybrid", "deferred"])
def test_bulk_data_passes_with_each_dispatch(router: Topology, dispatch: str) -> None:
    assert router.ask("sysctl", f"net.isr.dispatch={dispatch}") == f"net.isr.dispatch: {dispatch}\n"
    server = router.start("right", "iperf3", "-s", "-1", "--forceflush", log="iperf3.log")
    router.await_line("iperf3.log", "listening")
    report = json.loads(router.on("left", "iperf3", "-J", "-c", RIGHT, "-n", "200M", "-P", "2"))
    _check_amount(report)
    assert server.wait(timeout=PATIENCE) == 0


@pytest.mark.parametrize("giant", ["0", "1"])
def test_requests_pass_with_and_without_giant(topology: Topology, giant: str) -> None:
    topology.boot({**ROUTER, "debug.mpsafenet": giant, "net.isr.maxthreads": "2"})
    topology.start("right", "netserver", "-D", "-4", log="netserver.log")
    topology.await_line("netserver.log", "Starting netserver")
    for dispatch in ("direct", "deferred"):
        topology.ask("sysctl", f"net.isr.dispatch={dispatch}")
        for test in ("TCP_RR", "UDP_RR"):
            output = topology.on("left", "netperf", "-H", RIGHT, "-t", test, "-l", "1", "-P", "0", "--", "-v", "0")
            assert re.search(r"\d+\.\d+\s*$", output.splitlines()[0]), output


@pytest.mark.parametrize("dispatch", ["direct", "hybrid", "deferred"])
def test_a_stream_arrives_whole_whatever_the_injector_does(topology: Topology, dispatch: str) -> None:
    names = [f"if.tap{i}.impair.{what}" for i in range(2) for what in ("loss", "dup", "reorder", "corrupt")]
    topology.boot({**ROUTER, **dict.fromkeys(names, "10000"), "net.isr.dispatch": dispatch})
    send_a_stream(topology)


def test_several_queues_and_workers_pass_many_flows(topology: Topology) -> None:
    tunables = {"if.tap0.queues": "2", "if.tap1.queues": "2", "net.isr.maxthreads": "-1", "net.isr.bindthreads": "1"}
    topology.boot({**ROUTER, **tunables, "net.isr.dispatch": "deferred"})
    server = topology.start("right", "iperf3", "-s", "-1", "--forceflush", log="iperf3.log")
    topology.await_line("iperf3.log", "listening")
    report = json.loads(topology.on("left", "iperf3", "-J", "-c", RIGHT, "-n", "200M", "-P", "8"))
    _check_amount(report)
    assert server.wait(timeout=PATIENCE) == 0
    assert topology.value("if.tap0.queues") == "2"
    handled = re.findall(r"^\d+ +ip +(?:\d+ +){5}(\d+) ", topology.ask("netstat", "-Q"), re.MULTILINE)
    assert len(handled) == len(os.sched_getaffinity(0))
    assert all(int(count) > 0 for count in handled)


def test_a_protocol_that_needs_giant_is_queued(topology: Topology) -> None:
    topology.boot({**ROUTER, "net.isr.proto.ip.mpsafe": "0"})
    send_a_stream(topology)
    handled = re.search(r"^0 +ip +\d+ +\d+ +(\d+) +(\d+) +(\d+) ", topology.ask("netstat", "-Q"), re.MULTILINE)
    assert handled is not None
    assert handled[1] == handled[2] == "0"
    assert int(handled[3]) > 0


def test_no_buffer_is_lost(router: Topology) -> None:
    _ping(router)
    before = router.buffers()
    _ping(router, "-s", "4000", count=500)
    _ping(router, "-s", "4000", to="10.99.0.2", count=500)
    router.await_buffers(before)


def test_it_reports_errors_and_stops(topology: Topology) -> None:
    with pytest.raises(AssertionError, match=r"loader\.conf:3: unknown name 'net\.isr\.dipsatch'"):
        topology.boot({"net.isr.dipsatch": "direct"})
    with pytest.raises(AssertionError, match=r"loader\.conf:3: net\.isr\.dispatch: 'sideways' is none of"):
        topology.boot({"net.isr.dispatch": "sideways"})
    with pytest.raises(AssertionError, match=r"tap9: .*that the device was created by"):
        topology.boot({"if.tap9.inet": "10.99.9.2/24"})


def test_the_control_socket_is_private_and_answers(router: Topology) -> None:
    assert (router.directory / "ctl").stat().st_mode & 0o777 == 0o600
    assert re.search(r"^tap0: index \d+ mtu 1500 queues 1$", router.ask("ifconfig"), re.MULTILINE)
    assert re.search(r"^10\.99\.1\.0/24 +link +tap1$", router.ask("netstat", "-r"), re.MULTILINE)
    assert re.search(r"^0 +ip ", router.ask("netstat", "-Q"), re.MULTILINE)
    assert "forwarded" in router.ask("netstat", "-s")
    assert "mbufs in use" in router.ask("netstat", "-m")
    with pytest.raises(AssertionError, match="unknown request 'netstat -x'; known: sysctl, "):
        router.ask("netstat", "-x")
    with pytest.raises(AssertionError, match="can only be set at boot"):
        router.ask("sysctl", "debug.mpsafenet=0")


def test_it_ends_at_once_on_request(topology: Topology) -> None:
    child = topology.boot(ROUTER)
    assert topology.stop(child) == 0
    assert topology.log("boot.log").endswith("stack: down\n")
    assert not (topology.directory / "ctl").exists()


def test_tools_explain_themselves(router: Topology) -> None:
    assert "usage: bootstack" in run(f"{router.installed.prefix}/bin/bootstack", "-h")
    assert "usage: stackctl" in run(f"{router.installed.prefix}/bin/stackctl", "-h")
