# SPDX-License-Identifier: BSD-2-Clause
"""Unmodified programs on the stack, against Linux, as an unprivileged user."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from perfweb.measuring.tools import iperf3 as iperf3_tool
from tests.stack.topology import PATIENCE, PYTHON, Topology, impair, run

HERE = Path(__file__).parent
STACK, LINUX = "10.99.0.2", "10.99.0.1"
NETPERF = ["TCP_RR", "TCP_CRR", "TCP_STREAM", "TCP_MAERTS", "UDP_RR", "UDP_STREAM"]
STREAM = 3_000_000
COUNT = """
import socket
server = socket.create_server(("", 5003))
print("listening", flush=True)
sock, _ = server.accept()
count = 0
while data := sock.recv(65536):
    count += len(data)
print(count)
"""


UNIX = """
import socket, sys, threading
path = sys.argv[1]
server = socket.create_server(path, family=socket.AF_UNIX)
def serve():
    sock, _ = server.accept()
    while data := sock.recv(65536):
        sock.sendall(data)
threading.Thread(target=serve).start()
with socket.socket(socket.AF_UNIX) as sock, socket.socket() as inet:
    sock.connect(path)
    for n in range(100):
        sock.sendall(b"%06d" % n * 1000)
        assert sock.recv(6000, socket.MSG_WAITALL) == b"%06d" % n * 1000
    socket.send_fds(sock, [b"x"], [inet.fileno()])
    print("echoed", flush=True)
    threading.Event().wait()
"""


def finish(topology: Topology, child: subprocess.Popen[str], log: str) -> str:
    """Wait for a program to succeed; return its output."""
    try:
        status = child.wait(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        status = None
    assert status == 0, f"`{' '.join(child.args)}` gave {status} in {PATIENCE} s"  # type: ignore[arg-type]
    return topology.log(log)


def script(topology: Topology, name: str) -> str:
    """Copy a script to a place where the unprivileged user can read it."""
    copy = topology.directory / name
    shutil.copy(HERE / name, copy)
    copy.chmod(0o644)
    return str(copy)


def rate(report: str) -> float:
    """The number that netperf printed last with -P 0 -v 0."""
    numbers = [float(line) for line in report.splitlines() if re.fullmatch(r"\s*[\d.]+\s*", line)]
    assert numbers, report
    return numbers[-1]


# An iperf3 server serves one client at a time, under loss notices late that one is done, and then opens a new listening
# socket; a client's first datagram, which it waits for, may be lost.
NOT_NOW = (*iperf3_tool.BUSY, "unable to read from stream socket: Resource temporarily unavailable")


def once_free(client: Callable[[], str]) -> str:
    """The report of an iperf3 client, which is retried if it could not begin."""
    until = time.monotonic() + PATIENCE
    output = client()
    while any(why in output for why in NOT_NOW):
        assert time.monotonic() < until, output
        time.sleep(0.05)
        output = client()
    return output


def iperf3(topology: Topology, to: str, *options: str) -> str:
    """The report of an iperf3 client on left."""
    return once_free(lambda: topology.on("left", "iperf3", "-J", "-c", to, *options))


def check_iperf3(report: str) -> None:
    """Check a JSON report: no error, and data moved in every interval."""
    document, _ = json.JSONDecoder().raw_decode(report[report.index("{") :])
    assert "error" not in document, document["error"]
    for interval in document["intervals"]:
        assert interval["sum"]["bytes"] > 0, interval
    assert document["end"].get("sum_received", document["end"].get("sum"))["bytes"] > 0


@pytest.mark.parametrize(
    "tunables",
    [
        {"net.isr.dispatch": "direct"},
        {"net.isr.dispatch": "deferred"},
        {"net.isr.dispatch": "hybrid", "net.isr.maxthreads": "2"},
        {"debug.mpsafenet": "0"},
        {"net.inet.tcp.input": "exclusive", "if.tap0.queues": "2"},
        {"net.inet.tcp.input": "shared-socket-batch", "if.tap0.queues": "2"},
        {"net.inet.tcp.input": "backlog", "net.isr.dispatch": "deferred"},
        {"net.inet.tcp.pcbtable": "groups-thread", "net.isr.maxthreads": "2", "if.tap0.queues": "2"},
    ],
    ids=["direct", "deferred", "hybrid", "giant", "exclusive", "batch", "backlog", "groups"],
)
def test_netserver_on_the_stack(topology: Topology, tunables: dict[str, str]) -> None:
    topology.boot(tunables, ["netserver", "-D", "-f", "-4"])
    topology.await_line("boot.log", "Starting netserver")
    for test in NETPERF:
        report = topology.on(
            "left", "netperf", "-H", STACK, "-t", test, "-l", "1", "-P", "0", "-v", "0", timeout=PATIENCE
        )
        assert rate(report) > 0, (test, report)


def test_requests_of_udp_from_the_stack(topology: Topology) -> None:
    topology.start("left", "netserver", "-D", "-4", log="netserver.log")
    topology.await_port(12865, "left")
    child = topology.boot({}, ["netperf", "-H", LINUX, "-t", "UDP_RR", "-l", "1", "-P", "0", "-v", "0"])
    assert rate(finish(topology, child, "boot.log")) > 0


@pytest.mark.parametrize("harm", [(), ("loss",), ("reorder",), ("dup",), ("loss", "reorder", "dup")])
def test_every_byte_arrives_in_order(topology: Topology, harm: tuple[str, ...]) -> None:
    program = script(topology, "bytestream.py")
    topology.boot(impair(*harm), [PYTHON, program, "listen", "5000", str(STREAM)])
    topology.await_line("boot.log", "listening")
    for _ in range(2):
        output = topology.on("left", PYTHON, program, "connect", STACK, "5000", str(STREAM), timeout=PATIENCE)
        assert output.startswith("verified ")
        topology.await_line("boot.log", output)


def test_every_byte_arrives_in_order_from_the_stack(topology: Topology) -> None:
    program = script(topology, "bytestream.py")
    topology.start("left", PYTHON, program, "listen", "5000", str(STREAM), log="peer.log")
    topology.await_line("peer.log", "listening")
    words = [PYTHON, program, "connect", LINUX, "5000", str(STREAM)]
    assert "verified " in finish(topology, topology.boot(impair("loss", "dup"), words), "boot.log")
    topology.await_line("peer.log", "verified ")


def counted_connections(output: str) -> int:
    """Check the output of tcpconnect's client: the times of its connections match their number, order and duration."""
    line = re.compile(r"^connections: (\d+) seconds: (\d+\.\d+) rate: \d+\.\d connections/s$", re.MULTILINE)
    found = line.search(output)
    assert found is not None
    times = re.findall(r"^took (\d+\.\d{3}) to (\d+\.\d{3}) us: (\d+)$", output, re.MULTILINE)
    assert sum(int(count) for *_, count in times) == int(found[1])
    bounds = [float(bound) for *pair, _ in times for bound in pair]
    assert bounds == sorted(bounds)
    assert all(float(high) / float(low) == pytest.approx(2 ** (1 / 16), rel=0.001) for low, high, _ in times)
    assert bounds[0] > 1
    assert bounds[-2] < 1e6 * float(found[2])
    return int(found[1])


def test_tcpconnect_both_ways(topology: Topology) -> None:
    tcpconnect = f"{topology.installed.prefix}/bin/tcpconnect"
    server = topology.boot({}, [tcpconnect, "-s", "-p", "5001"])
    topology.await_line("boot.log", "listening")
    before = topology.buffers()
    for parallel in ("1", "4"):
        words = [tcpconnect, "-c", STACK, "-p", "5001", "-t", "2", "-n", parallel]
        assert counted_connections(topology.on("left", *words)) > 100
    topology.await_buffers(before, margin=19)
    assert topology.stop(server) == -15
    topology.start("left", tcpconnect, "-s", "-a", LINUX, "-p", "5001", log="server.log")
    topology.await_line("server.log", "listening")
    child = topology.boot({}, [tcpconnect, "-c", LINUX, "-p", "5001", "-t", "2"])
    assert counted_connections(finish(topology, child, "boot.log")) > 100


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("tcpconnect -s -p 0", "tcpconnect: -p: '0' is not an integer from 1 to 65535"),
        ("tcpconnect -c 10.0.0.1 -p 1 -t nan", "tcpconnect: -t: 'nan' is not in 0.01 to 86400"),
        ("tcpload rr -n 16k 10.0.0.1 1", "tcpload: -n: '16k' is not an integer from 1 to "),
        ("tcpload rr -t 2s 10.0.0.1 1", "tcpload: -t: '2s' is not in 0.01 to 3600"),
        ("tcpload alone rr -p 0 10.0.0.1 1", "tcpload: -p: '0' is not an integer from 1 to 64"),
        ("tcpload rr -p 2 10.0.0.1 1", "usage: tcpload serve"),
        ("tcpload in -e 10.0.0.1 1", "usage: tcpload serve"),
        ("tcpload alone rr -e 10.0.0.1 1", "usage: tcpload serve"),
        ("tcpload ask rr -e 10.0.0.1 1", "usage: tcpload serve"),
        ("tcpload rr -e -s 4097 10.0.0.1 1", "usage: tcpload serve"),
        ("tcpload asked 65536 10.0.0.1 1", "tcpload: ASKED: '65536' is not an integer"),
        ("netblast -r -5 10.0.0.1 1", "netblast: -r: '-5' is not in 0 to 1000000000"),
        ("unixbench -s -p 65536", "unixbench: -p: '65536' is not an integer from 1 to 65535"),
    ],
)
def test_a_number_that_cannot_be_meant_is_refused(topology: Topology, words: str, reason: str) -> None:
    """Half of it would be measured as another one."""
    tool, *rest = words.split()
    done = subprocess.run(
        [f"{topology.installed.prefix}/bin/{tool}", *rest], capture_output=True, text=True, timeout=PATIENCE
    )
    assert reason in done.stderr
    assert done.returncode == 64


def test_tcpconnect_reports_errors(topology: Topology) -> None:
    tcpconnect = f"{topology.installed.prefix}/bin/tcpconnect"
    with pytest.raises(AssertionError, match="tcpconnect: connect: Connection refused"):
        topology.on("left", tcpconnect, "-c", LINUX, "-p", "5001", "-t", "1")
    with pytest.raises(AssertionError, match="either -s or -c ADDR"):
        run(tcpconnect, "-p", "1")
    with pytest.raises(AssertionError, match=r"an address like 10\.77\.1\.2 or 2001:db8::2"):
        run(tcpconnect, "-c", "localhost", "-p", "1", "-t", "1")


def test_one_event_loop_for_both_networks(topology: Topology) -> None:
    path = str(topology.directory / "echo.sock")
    server = topology.boot({}, [PYTHON, script(topology, "echo.py"), "5002", path])
    topology.await_line("boot.log", "listening")
    client = f"""
import socket
socks = [socket.create_connection(("{STACK}", 5002)) for _ in range(50)]
for round in range(20):
    for sock in socks: sock.sendall(b"%05d" % round * 100)
    for sock in socks: assert sock.recv(500, socket.MSG_WAITALL) == b"%05d" % round * 100
print("echoed")
"""
    with socket.socket(socket.AF_UNIX) as local:
        local.connect(path)
        local.sendall(b"before")
        assert local.recv(100) == b"before"
        assert topology.on("left", PYTHON, "-c", client) == "echoed\n"
        local.sendall(b"after")
        assert local.recv(100) == b"after"
    assert topology.stop(server) == 0
    assert "stopped\n" in topology.log("boot.log")


def test_unix_domain_sockets_of_the_stack(topology: Topology) -> None:
    path = str(topology.directory / "s")
    program = topology.boot({"unix.sockets": "stack"}, [PYTHON, "-c", UNIX, path])
    topology.await_line("boot.log", "echoed")
    shown = topology.ask("netstat", "-f", "unix")
    assert re.search(rf"^ustrm +0 +0 LISTEN +{path}$", shown, re.MULTILINE), shown
    assert re.search(r"^ustrm +0 +\d+ CONNECTED", shown, re.MULTILINE), shown
    assert path not in topology.ask("netstat", "-a")
    assert topology.stop(program) == -15


def test_what_a_program_wrote_before_it_exited_arrives(topology: Topology) -> None:
    receiver = topology.start("left", PYTHON, "-c", COUNT, log="receiver.log")
    topology.await_line("receiver.log", "listening")
    send = f"import socket; s = socket.create_connection(('{LINUX}', 5003)); s.sendall(bytes(500_000))"
    assert finish(topology, topology.boot({}, [PYTHON, "-c", send]), "boot.log")
    assert finish(topology, receiver, "receiver.log").endswith("500000\n")


def test_urgent_data_with_linux(topology: Topology) -> None:
    program = [PYTHON, script(topology, "urgent.py")]
    server = topology.boot({}, [*program, "listen", "5004"])
    topology.await_line("boot.log", "listening")
    assert topology.on("left", *program, "connect", STACK, "5004") == "all came\n"
    finish(topology, server, "boot.log")
    server = topology.start("left", *program, "listen", "5005", log="server.log")
    topology.await_line("server.log", "listening")
    finish(topology, topology.boot({}, [*program, "connect", LINUX, "5005"]), "boot.log")
    finish(topology, server, "server.log")


def test_a_configuration_that_is_wrong_stops_the_program_before_it_begins(topology: Topology) -> None:
    with pytest.raises(AssertionError, match="'sideways' is none of"):
        topology.boot({"net.isr.dispatch": "sideways"}, ["echo", "the program ran"])
    assert topology.children[-1].wait(timeout=PATIENCE) == 78
    assert "the program ran" not in topology.log("boot.log")
