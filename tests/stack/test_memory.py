# SPDX-License-Identifier: BSD-2-Clause
"""Interfaces in memory: the stack with a traffic generator, a sink and a mirror, and no host network at all."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest

from tests.stack.topology import PATIENCE, PYTHON, Topology

FORWARD = {
    "net.inet.ip.forwarding": "1",
    "if.mem0.inet": "10.9.0.1/24",
    "if.mem1.inet": "10.9.1.1/24",
}
# A server and a client in one process, which connect through the mirror.
MIRRORED = """
import socket, threading
server = socket.create_server(("10.9.0.1", 5000))
def echo():
    sock, _ = server.accept()
    while data := sock.recv(65536):
        sock.sendall(data)
    sock.close()
thread = threading.Thread(target=echo)
thread.start()
sent = bytes(range(256)) * 4000
with socket.create_connection(("10.9.0.7", 5000)) as sock:
    sender = threading.Thread(target=lambda: (sock.sendall(sent), sock.shutdown(socket.SHUT_WR)))
    sender.start()
    received = b"".join(iter(lambda: sock.recv(65536), b""))
    sender.join()
thread.join()
print("whole" if received == sent else "damaged", flush=True)
"""

# One thread is both ends, and so processes its own packets; or each of several threads is both.
ALONE = """
import concurrent.futures, os, socket, sys
def both_ends(port):
    server = socket.create_server(("10.9.0.1", port))
    client = socket.create_connection(("10.9.0.7", port))
    peer, _ = server.accept()
    whole = True
    for size in [1, 100, 1448, 5000, 60000, 300000] * 20:
        sent = os.urandom(size)
        for here, there in ((client, peer), (peer, client)):
            here.sendall(sent)
            whole = whole and there.recv(size, socket.MSG_WAITALL) == sent
    client.close()
    return whole and peer.recv(1) == b""
threads = int(sys.argv[1])
with concurrent.futures.ThreadPoolExecutor(threads) as pool:
    print("whole" if all(pool.map(both_ends, range(5000, 5000 + threads))) else "damaged", flush=True)
"""

# Some streams of a character generator at once, each from its first byte on as in RFC 864, to its end.
GENERATED = """
import concurrent.futures, socket
LINES = b"".join(bytes(32 + (line + column) % 95 for column in range(72)) + b"\\r\\n" for line in range(95))
SIZE = 2_000_000
EXPECTED = LINES * (SIZE // len(LINES) + 1000)
def read(host):
    with socket.create_connection((f"10.9.0.{host}", 19)) as sock:
        sock.sendall(b"thrown away")
        received = b""
        while len(received) < SIZE:
            received += sock.recv(1 + len(received) % 50000)
        sock.shutdown(socket.SHUT_WR)
        received += b"".join(iter(lambda: sock.recv(65536), b""))
    return EXPECTED.startswith(received)
with concurrent.futures.ThreadPoolExecutor(3) as pool:
    print("whole" if all(pool.map(read, range(2, 8))) else "damaged", flush=True)
"""

ASK_WRONGLY = """
import errno, socket
lines = [b"", b"in 1", b"in 0 1", b"in 1 nan", b"in 99999 1", b"in 1 1e9", b"in -1 1", b"sideways 1 1", b"x" * 200]
for line in [line + b"\\n" for line in lines]:
    with socket.create_connection(("10.99.0.2", 5304)) as sock:
        sock.settimeout(60)
        try:
            sock.sendall(line)
            sock.shutdown(socket.SHUT_WR)
            reply = b"".join(iter(lambda: sock.recv(1000), b""))
        except OSError as gone:  # reset by the server, which has had more than a line; or before shutdown()
            assert gone.errno in (errno.ECONNRESET, errno.EPIPE, errno.ENOTCONN), gone
            reply = b""
        assert reply in (b"", b'tcpload: unknown load; an example is "in 10 2"\\n'), (line, reply)
print("refused")
"""


@pytest.mark.parametrize("fast", ["0", "1"])
def test_what_a_source_sends_arrives_at_the_sink(topology: Topology, fast: str) -> None:
    topology.boot({
        **FORWARD,
        "net.inet.ip.fastforwarding": fast,
        "if.mem0.source": "from=10.9.0.2 to=10.9.1.2 len=100 flows=10 hosts=3 count=2000",
    })  # fmt: skip
    topology.await_value("if.mem0.stats.ipackets", 2000)
    # Three requests for link addresses, and no announcement.
    topology.await_value("if.mem1.stats.opackets", 2003)
    assert topology.value("net.inet.ip.stats.fastforward") == ("2000" if fast == "1" else "0")
    assert topology.value("if.mem0.source").startswith("from=10.9.0.2 ")


def test_packets_that_arrive_during_the_boot_are_forwarded(topology: Topology) -> None:
    boot = {**FORWARD, "if.mem0.source": "from=10.9.0.2 to=10.9.1.2 len=100 count=50"}
    for _ in range(20):  # one in eight found an interface that was not ready
        child = topology.boot(boot)
        topology.await_value("if.mem1.stats.opackets", 51)
        assert topology.stop(child) == 0


MIRROR = {"if.mem0.inet": "10.9.0.1/24", "if.mem0.wire": "mirror"}


@pytest.mark.parametrize(
    "tunables", [*({"if.mem0.offload": offload} for offload in ("0", "1", "2")), {"if.mem0.queues": "2"}]
)
def test_tcp_passes_a_mirror(topology: Topology, tunables: dict[str, str]) -> None:
    topology.boot({**MIRROR, **tunables}, (PYTHON, "-c", MIRRORED))
    topology.await_line("boot.log", "whole")


@pytest.mark.parametrize(
    "tunables",
    [
        {},
        {"debug.mpsafenet": "0"},
        {"net.isr.dispatch": "deferred"},
        {"net.isr.dispatch": "hybrid", "net.isr.maxthreads": "2"},
        {"net.inet.tcp.input": "exclusive"},
        {"net.inet.tcp.input": "shared-socket-batch"},
        {"net.inet.tcp.input": "backlog"},
        {"if.mem0.impair.delay": "100", "if.mem0.impair.reorder": "10000"},
    ],
)
def test_one_thread_is_both_ends(topology: Topology, tunables: dict[str, str]) -> None:
    topology.boot({**MIRROR, **tunables}, (PYTHON, "-c", ALONE, "1"))
    topology.await_line("boot.log", "whole")


@pytest.mark.parametrize(
    "tunables",
    [
        {},
        {"if.mem0.lro": "0", "net.inet.tcp.input": "shared-socket-batch"},
        {"net.inet.tcp.input": "backlog", "if.mem0.mtu": "600"},
        {"net.isr.dispatch": "deferred", "if.mem0.queues": "2"},
        {"if.mem0.impair.loss": "2000", "if.mem0.impair.reorder": "2000", "if.mem0.impair.delay": "10"},
    ],
)
def test_a_character_generator_sends_the_pattern_to_each_client(topology: Topology, tunables: dict[str, str]) -> None:
    topology.boot({**MIRROR, "if.mem0.wire": "chargen", **tunables}, (PYTHON, "-c", GENERATED))
    topology.await_line("boot.log", "whole")


def test_a_character_generator_acknowledges_a_burst_once_with_each_strategy(topology: Topology) -> None:
    load = [f"{topology.installed.prefix}/bin/tcpload", "out", "-t", "20", "10.9.0.7", "19"]
    for strategy in ("socket", "exclusive", "shared-socket", "shared-socket-batch"):
        boot = {"if.mem0.wire": "chargen", "if.mem0.lro": "0", "net.inet.tcp.input": strategy}
        child = topology.boot({**MIRROR, **boot}, load)
        topology.await_line("boot.log", "stack: up")
        topology.await_value("net.inet.tcp.stats.rcvdata", 100_000)
        received, acknowledged = (topology.value(f"net.inet.tcp.stats.{name}") for name in ("rcvdata", "sndtotal"))
        assert int(acknowledged) < int(received) / 10, strategy
        topology.stop(child)


@pytest.mark.parametrize("queues", ["1", "2", "64"])
def test_each_of_several_threads_is_both_ends(topology: Topology, queues: str) -> None:
    topology.boot({**MIRROR, "if.mem0.queues": queues}, (PYTHON, "-c", ALONE, "4"))
    topology.await_line("boot.log", "whole")


def test_each_thread_of_a_load_has_a_cpu_of_its_own(topology: Topology) -> None:
    ours = sorted(os.sched_getaffinity(0))
    load = [
        f"{topology.installed.prefix}/bin/tcpload",
        "alone",
        "rr",
        "-p",
        str(len(ours)),
        "-t",
        "20",
        "10.9.0.7",
        "5304",
    ]
    child = topology.boot({**MIRROR, "if.mem0.queues": "2"}, load)

    def pinned() -> list[int]:
        threads = [os.sched_getaffinity(int(thread.name)) for thread in Path(f"/proc/{child.pid}/task").iterdir()]
        return sorted(cpu for cpus in threads if len(cpus) == 1 for cpu in cpus)

    until = time.monotonic() + PATIENCE
    while pinned() != ours:
        assert time.monotonic() < until, f"pinned to {pinned()}, not to {ours}"
        time.sleep(0.05)


def test_a_load_has_connections_of_its_own_in_each_thread(topology: Topology) -> None:
    program = f"{topology.installed.prefix}/bin/tcpload"
    load = [program, "alone", "rr", "-p", "2", "-n", "3", "-t", "0.1", "10.9.0.7", "5304"]
    assert topology.boot({**MIRROR, "if.mem0.queues": "2"}, load).wait(PATIENCE) == 0
    assert re.search(r"^[1-9][0-9]* transactions/s$", topology.log("boot.log"), re.MULTILINE)


@pytest.mark.parametrize("mode", ["rr", "crr"])
@pytest.mark.parametrize("size", ["1", "4096"])
def test_an_event_loop_is_each_end_of_a_load(topology: Topology, mode: str, size: str) -> None:
    program = f"{topology.installed.prefix}/bin/tcpload"
    server = topology.boot({}, [program, "serve", "-e", "5304"])
    topology.await_port(5304)
    client = (program, mode, "-e", "-n", "50", "-s", size, "-t", "0.2", "10.99.0.2", "5304")
    assert re.fullmatch(r"[1-9][0-9]* transactions/s\n", topology.on("left", *client))
    assert topology.stop(server) == -15
    load = [program, "self", mode, "-e", "-n", "50", "-s", size, "-t", "0.2", "10.9.0.7", "5304"]
    assert topology.boot(MIRROR, load).wait(PATIENCE) == 0
    assert re.search(r"^[1-9][0-9]* transactions/s$", topology.log("boot.log"), re.MULTILINE)
    with pytest.raises(AssertionError, match="tcpload: connect: Connection refused"):
        topology.on("left", program, mode, "-e", "10.99.0.1", "5304")


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        (
            "if.mem0.wire",
            "tunnel",
            "unknown far end 'tunnel'; use sink, mirror or chargen",
        ),
        ("if.mem0.source", "from=10.9.0.2", "is not a source like"),
        ("if.mem0.source", "from=10.9.0.2 to=10.9.1.2 len=9", "is not a source like"),
        ("if.mem0.queues", "65", "is not a number from 1 to 64"),
        ("if.tap0.source", "from=10.9.0.2 to=10.9.1.2", "only interfaces in memory"),
        ("if.mem0.offload", "3", "is not a number from 0 to 2"),
        ("net.inet.tcp.input", "single", "is none of socket giant pcbinfo"),
        ("net.inet.ip.alone", "ipx", "'ipx' is none of tcp udp"),
        ("net.inet.ip.alone", "udp", "the net lock is not shared; set net.inet.tcp.input to shared-socket"),
    ],
)
def test_what_cannot_be_is_explained(topology: Topology, name: str, value: str, reason: str) -> None:
    with pytest.raises(AssertionError, match=reason):
        topology.boot({**FORWARD, name: value})


def test_a_load_connects_to_itself_through_a_mirror_on_request(topology: Topology) -> None:
    program = f"{topology.installed.prefix}/bin/tcpload"
    child = topology.boot({**MIRROR, "if.mem0.lro": "0"}, [program, "asked", "5304", "10.9.0.7", "5305"])
    topology.await_line("boot.log", "tcpload: listening on port 5304")
    for mode, streams, unit in (("in", "1", "bytes"), ("out", "10", "bytes"), ("crr", "2", "transactions")):
        reply = topology.on("left", program, "ask", mode, "-n", streams, "-t", "0.1", "10.99.0.2", "5304")
        assert re.fullmatch(rf"[1-9][0-9]* {unit}/s\n", reply)
    assert topology.on("left", PYTHON, "-c", ASK_WRONGLY) == "refused\n"
    assert topology.stop(child) == -15
    with pytest.raises(AssertionError, match="tcpload: connect: "):
        topology.on("left", program, "ask", "in", "10.99.0.1", "5304")
