# SPDX-License-Identifier: BSD-2-Clause
"""IPv6 against Linux: programs on the stack, and the stack as a router; as an unprivileged user."""

from __future__ import annotations

import re
import time

import pytest

from tests.stack.test_programs import (
    NETPERF,
    STREAM,
    check_iperf3,
    finish,
    iperf3,
    rate,
    script,
)
from tests.stack.topology import PATIENCE, PYTHON, Topology, impair

STACK, LINUX, RIGHT = "2001:db8::2", "2001:db8::1", "2001:db8:1::1"
HOST = {"if.tap0.inet6": f"{STACK}/64", "net.inet6.ip6.dad_count": "0"}
ROUTER = {**HOST, "if.tap1.inet": "10.99.1.2/24", "if.tap1.inet6": "2001:db8:1::2/64", "net.inet6.ip6.forwarding": "1"}

WRONG_ROUTES = {
    "route6 add": "usage: route6 add DESTINATION GATEWAY",
    "route6 add 2001:db8:7:: 2001:db8:1::1": "neither default nor a subnet",
    "route6 add 2001:db8:7::/129 2001:db8:1::1": "neither default nor a subnet",
    "route6 add 2001:db8:7::/32 2001:db8:1::1": "has bits beyond its first 32",
    "route6 add 2001:db8:7::/48 10.99.1.1": "is not the IPv6 address of a gateway",
    "route6 add 2001:db8:7::/48 2001:db8:7::1": "the gateway is not in an interface's subnet",
    "route6 add 2001:db8:1::/64 2001:db8:1::1": "a route to this destination exists",
    "route6 delete 2001:db8:7::/48": "no route has exactly this destination",
    "route6 delete 2001:db8:1::/64": "no route has exactly this destination",
    "route6 get 2a00::1": "no route to 2a00::1",
}

# A router advertisement: addresses of 2001:db8:5::/64 for half an hour, and this host as the default router.
ADVERTISE = """
import socket, struct
option = struct.pack("!BBBBIII16s", 3, 4, 64, 0xC0, 3600, 1800, 0, socket.inet_pton(socket.AF_INET6, "2001:db8:5::"))
message = struct.pack("!BBHBBHII", 134, 0, 0, 64, 0, 1800, 0, 0) + option
with socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6) as sock:
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
    sock.sendto(message, ("ff02::1", 0, 0, socket.if_nametoindex("data0")))
"""

# A server prints the addresses of its clients, one of each family, on one socket.
DUAL_STACK = """
import socket
with socket.create_server(("::", 5000), family=socket.AF_INET6, dualstack_ipv6=True) as server:
    print("listening", flush=True)
    for _ in range(2):
        sock, address = server.accept()
        with sock:
            sock.sendall(address[0].encode())
"""
CLIENT = """
import socket, sys
with socket.create_connection((sys.argv[1], 5000), timeout=10) as sock:
    print(sock.recv(100).decode())
"""


def _ping(topology: Topology, *options: str, to: str = STACK, count: int = 3) -> str:
    words = ["ping", "-6", "-n", "-c", str(count), "-i", "0.3", "-W", "5", *options, to]
    return topology.on("left", *words, check=False)


def _await_link_of_linux(topology: Topology) -> None:
    """Wait until Linux has noticed that its link is up, which may be late under load: its groups receive nothing
    before.
    """
    until = time.monotonic() + PATIENCE
    while "ff00::/8 dev data0" not in (output := topology.on("left", "ip", "-6", "route", "show", "table", "local")):
        assert time.monotonic() < until, output
        time.sleep(0.02)


def _link_local(topology: Topology) -> str:
    found = re.search(r"inet6 (fe80::\S+)/64", topology.ask("ifconfig"))
    assert found is not None
    return found[1]


def test_netserver_on_the_stack(topology: Topology) -> None:
    topology.boot(HOST, ["netserver", "-D", "-f", "-6"])
    topology.await_line("boot.log", "Starting netserver")
    for test in NETPERF:
        report = topology.on("left", "netperf", "-6", "-H", STACK, "-t", test, "-l", "1", "-P", "0", "-v", "0")
        assert rate(report) > 0, (test, report)


def test_netperf_on_the_stack(topology: Topology) -> None:
    topology.start("left", "netserver", "-D", "-6", log="netserver.log")
    topology.await_line("netserver.log", "Starting netserver")
    for test in ("TCP_RR", "TCP_MAERTS", "UDP_RR"):
        child = topology.boot(HOST, ["netperf", "-6", "-H", LINUX, "-t", test, "-l", "1", "-P", "0", "-v", "0"])
        assert rate(finish(topology, child, "boot.log")) > 0


def test_iperf3_both_ways(topology: Topology) -> None:
    topology.boot(HOST, ["iperf3", "-s", "--forceflush"])
    topology.await_line("boot.log", "listening")
    for options in ((), ("-R",), ("-u", "-b", "100M")):
        check_iperf3(iperf3(topology, STACK, "-6", "-t", "1", *options))


def test_offloads_survive(topology: Topology) -> None:
    topology.boot(HOST, ["iperf3", "-s", "--forceflush"])
    topology.await_line("boot.log", "listening")
    check_iperf3(iperf3(topology, STACK, "-6", "-t", "1", "-R"))
    sent = int(topology.value("if.tap0.stats.obytes")) / int(topology.value("if.tap0.stats.opackets"))
    assert sent > 4000, "frames that the host's side cuts into segments"


@pytest.mark.parametrize("harm", [(), ("loss", "reorder", "dup")])
def test_every_byte_arrives_in_order(topology: Topology, harm: tuple[str, ...]) -> None:
    program = script(topology, "bytestream.py")
    topology.boot({**HOST, **impair(*harm)}, [PYTHON, program, "listen", "5000", str(STREAM)])
    topology.await_line("boot.log", "listening")
    output = topology.on("left", PYTHON, program, "connect", STACK, "5000", str(STREAM), timeout=PATIENCE)
    assert output.startswith("verified ")
    topology.await_line("boot.log", output)


def test_a_socket_of_ipv6_serves_both_families(topology: Topology) -> None:
    topology.boot(HOST, [PYTHON, "-c", DUAL_STACK])
    topology.await_line("boot.log", "listening")
    assert re.search(r"^tcp6 .*\*:5000 ", topology.ask("netstat", "-a"), re.MULTILINE)
    assert topology.on("left", PYTHON, "-c", CLIENT, STACK) == f"{LINUX}\n"
    assert topology.on("left", PYTHON, "-c", CLIENT, "10.99.0.2") == "::ffff:10.99.0.1\n"


def test_addresses_are_detected_as_unique_before_a_program_starts(topology: Topology) -> None:
    topology.boot({"if.tap0.inet6": f"{STACK}/64"})
    assert f"inet6 {STACK}/64\n" in topology.ask("ifconfig"), "not tentative any more"
    assert "3 received" in _ping(topology)


def test_an_address_that_linux_has_is_not_used(topology: Topology) -> None:
    _await_link_of_linux(topology)
    topology.boot({"if.tap0.inet6": f"{LINUX}/64 {STACK}/64", "net.inet6.ip6.dad_count": "3"})
    assert f"inet6 {LINUX}/64 duplicated" in topology.ask("ifconfig")
    topology.await_line("boot.log", "another host has the address")
    assert "3 received" in _ping(topology)


def test_link_local_addresses_of_two_links(topology: Topology) -> None:
    topology.boot(ROUTER, [PYTHON, "-c", DUAL_STACK])
    topology.await_line("boot.log", "listening")
    address = f"{_link_local(topology)}%data0"
    # Linux's own link-local address is tentative for a second or two
    for _ in range(20):
        if "3 received" in (output := _ping(topology, to=address)):
            break
    assert "3 received" in output
    assert topology.on("left", PYTHON, "-c", CLIENT, address).startswith("fe80::")
    assert re.search(r"^fe80::\S+ .* tap0 (reachable|stale|delay)$", topology.ask("ndp"), re.MULTILINE)


def test_ping_of_all_sizes(topology: Topology) -> None:
    topology.boot(HOST)
    for size in ("0", "1452", "1453", "4000", "60000"):
        assert "3 received" in _ping(topology, "-s", size), size
    assert topology.value("net.inet6.ip6.stats.reassembled") == "9"


def test_the_router(topology: Topology) -> None:
    topology.boot(ROUTER)
    assert "3 received" in _ping(topology, to=RIGHT)
    assert "ttl=63" in _ping(topology, to=RIGHT)
    assert "3 received" in _ping(topology, "-s", "4000", to=RIGHT)
    assert topology.value("net.inet6.ip6.stats.reassembled") == "0"
    assert f"From {STACK} icmp_seq=1 Time exceeded: Hop limit" in _ping(topology, "-t", "1", to=RIGHT, count=1)
    assert f"From {STACK} icmp_seq=1 Destination unreachable" in _ping(topology, to="2001:db8:7::1", count=1)
    assert re.search(r"^2001:db8:1::/64 +link +tap1$", topology.ask("netstat", "-r"), re.MULTILINE)


@pytest.mark.parametrize("how", [{}, {"net.isr.dispatch": "deferred"}, {"debug.mpsafenet": "0"}])
def test_bulk_data_through_the_router(topology: Topology, how: dict[str, str]) -> None:
    topology.boot({**ROUTER, **how})
    topology.start("right", "iperf3", "-s", "--forceflush", log="iperf3.log")
    topology.await_line("iperf3.log", "listening")
    for options in ((), ("-R",)):
        check_iperf3(iperf3(topology, RIGHT, "-6", "-t", "1", *options))


def test_a_narrow_link_reports_its_mtu(topology: Topology) -> None:
    topology.boot({**ROUTER, "if.tap1.mtu": "1280"})
    assert "Packet too big: mtu=1280" in _ping(topology, "-M", "do", "-s", "1400", to=RIGHT, count=1)
    assert "3 received" in _ping(topology, "-s", "1400", to=RIGHT)


def test_a_neighbour_that_does_not_answer_is_unreachable(topology: Topology) -> None:
    topology.boot(ROUTER)
    output = topology.on("left", "ping", "-6", "-n", "-c", "1", "-W", "10", "2001:db8:1::77", check=False)
    assert f"From {STACK} icmp_seq=1 Destination unreachable: Address unreachable" in output


def test_routes_come_and_go(topology: Topology) -> None:
    topology.boot(ROUTER)
    topology.on("right", "ip", "address", "add", "2001:db8:7::1/128", "dev", "lo", "nodad")
    assert topology.ask("route6", "add", "2001:db8:7::/48", RIGHT) == ""
    assert topology.ask("route6", "get", "2001:db8:7::1") == f"2001:db8:7::1 by {RIGHT} on tap1\n"
    assert "3 received" in _ping(topology, to="2001:db8:7::1")
    assert topology.ask("route6", "delete", "2001:db8:7::/48") == ""
    assert "2001:db8:7::" not in topology.ask("netstat", "-r")
    for request, reason in WRONG_ROUTES.items():
        with pytest.raises(AssertionError, match=reason):
            topology.ask(*request.split())


def test_a_router_gives_it_an_address(topology: Topology) -> None:
    topology.boot({"if.tap0.inet6": "auto", "net.inet6.ip6.dad_count": "0"})
    topology.on("left", "ip", "address", "add", "2001:db8:5::1/64", "dev", "data0", "nodad")
    # Linux's own link-local address, which must be the source, is tentative for a second or two
    until = time.monotonic() + PATIENCE
    while (found := re.search(r"inet6 (2001:db8:5:\S+)/128 autoconf", topology.ask("ifconfig"))) is None:
        assert time.monotonic() < until, topology.ask("netstat", "-s")
        topology.on("left", PYTHON, "-c", ADVERTISE, check=False)
        time.sleep(0.25)
    assert "3 received" in _ping(topology, to=found[1])
    assert re.search(r"^default +fe80::\S+ +tap0 advertised$", topology.ask("netstat", "-r"), re.MULTILINE)
