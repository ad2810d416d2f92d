# SPDX-License-Identifier: BSD-2-Clause
"""Unmodified common programs: a server and its clients, either of them on the stack and the other on Linux, over a
good network and over one that loses, reorders and duplicates packets.
"""

from __future__ import annotations

import hashlib
import os
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tests.stack.test_programs import LINUX, STACK, check_iperf3, finish, once_free, rate
from tests.stack.topology import PYTHON, Topology, impair, run

RIGHT = "10.99.1.1"
SIZE = 3_000_000
VALUE = random.Random(3).randbytes(20_000).hex()
BAD = ("loss", "reorder", "dup")
NETWORKS = pytest.mark.parametrize("harms", [(), BAD], ids=["good", "bad"])
# UDP_RR does not recover from a lost datagram, and is run over a good network in test_programs.py.
NETPERF = ["TCP_RR", "TCP_CRR", "TCP_STREAM", "TCP_MAERTS", "UDP_STREAM"]
IPERF3 = [(), ("-R",), ("-P", "10"), ("-P", "10", "-R"), ("--bidir",), ("-u", "-b", "100M")]
NGINX = """
daemon off;
master_process {master};
worker_processes 2;
pid {directory}/nginx.pid;
error_log stderr;
events {{}}
http {{
    access_log off;
    sendfile on;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    server {{ listen 8080; root {directory}; }}
}}
"""
SSHD = """
ListenAddress {address}:2222
HostKey {directory}/host_key
AuthorizedKeysFile {directory}/key.pub
PidFile none
StrictModes no
UsePAM no
Subsystem sftp internal-sftp
"""

Check = Callable[[str], None]


@dataclass(frozen=True)
class Pair:
    """A server at a port, and its clients, one after another, each with a check of its output."""

    port: int
    server: Callable[[Path], list[str]]
    clients: Callable[[Path, str], list[tuple[list[str], Check]]]
    status: int = -15  # exit status of the server after SIGTERM


def netperf(_directory: Path, address: str) -> list[tuple[list[str], Check]]:
    """Tests of two seconds each, because a lost SYN costs the first; a plausible number."""

    def check(output: str) -> None:
        assert 0 < rate(output) < 1e6, output

    return [(["netperf", "-H", address, "-t", test, "-l", "2", "-P", "0", "-v", "0"], check) for test in NETPERF]


def iperf3(_directory: Path, address: str) -> list[tuple[list[str], Check]]:
    """Each direction, ten connections, and UDP."""
    return [(["iperf3", "-J", "-c", address, "-t", "2", *options], check_iperf3) for options in IPERF3]


def check_tcpbench(connections: int, output: str) -> None:
    """A line for each connection at each count, with bytes on each, but not each time: a lost retransmission costs
    the 200 ms of a timeout, and the next one twice as long.
    """
    # The rate of the first connections is "inf" if another one had to send its SYN again, a second later.
    counts = [int(count) for count in re.findall(r"^ +\d+ +(\d+) +\S+ +\S+%", output, re.MULTILINE)]
    assert len(counts) >= connections, output
    assert all(sum(counts[n::connections]) > 0 for n in range(connections)), output


def tcpbench(_directory: Path, address: str) -> list[tuple[list[str], Check]]:
    """One connection, and ten."""
    words = ["tcpbench", "-4", "-t", "1", "-r", "500"]
    return [([*words, "-n", str(n), address], partial(check_tcpbench, n)) for n in (1, 10)]


def page(directory: Path) -> str:
    """Write a page of random bytes; return its digest."""
    data = random.Random(7).randbytes(SIZE)
    (directory / "page").write_bytes(data)
    return hashlib.sha256(data).hexdigest()


def nginx(directory: Path, master: str = "off") -> list[str]:
    """Write a configuration with a single process; return the command."""
    conf = directory / "nginx.conf"
    conf.write_text(NGINX.format(directory=directory, master=master), encoding="utf-8")
    return ["/usr/sbin/nginx", "-e", "stderr", "-c", str(conf)]


def curl(port: int) -> Callable[[Path, str], list[tuple[list[str], Check]]]:
    """Fetch the page ten times over two persistent connections, compared by its digest."""

    def clients(directory: Path, address: str) -> list[tuple[list[str], Check]]:
        digest = page(directory)
        files = [directory / f"fetched-{n}" for n in range(10)]
        outputs = [word for file in files for word in ("-o", str(file), f"http://{address}:{port}/page")]

        def check(_output: str) -> None:
            assert [hashlib.sha256(file.read_bytes()).hexdigest() for file in files] == [digest] * len(files)

        return [(["curl", "-sSf", "-Z", "--parallel-max", "2", "--max-time", "120", *outputs], check)]

    return clients


def http_server(directory: Path) -> list[str]:
    """Python's server, with a thread for each connection."""
    return [PYTHON, "-u", "-m", "http.server", "-d", str(directory), "8000"]


def redis_server(directory: Path) -> list[str]:
    """A server without persistence that listens on every address."""
    return ["redis-server", "--port", "6379", "--bind", "*", "--protected-mode", "no", "--save", "",
            "--appendonly", "no", "--dir", str(directory)]  # fmt: skip


def check_benchmark(report: str) -> None:
    """A line with a rate for each of the tests."""
    rows = [line.replace('"', "").split(",") for line in report.splitlines() if line.startswith('"')]
    rates = {row[0].split(" ")[0]: float(row[1]) for row in rows if row[0] != "test"}
    assert {"SET", "GET", "LRANGE_100", "MSET"} <= set(rates), report
    assert all(rate > 0 for rate in rates.values()), report


def redis(_directory: Path, address: str) -> list[tuple[list[str], Check]]:
    """A benchmark with pipelines and large values, whose responses it checks; and a value that is read back."""

    def check(answer: str) -> Check:
        def answers(output: str) -> None:
            assert answer in output.splitlines(), output

        return answers

    options = ["-n", "5000", "-c", "20", "-P", "4", "-d", "2000", "-t", "set,get,lrange_100,mset", "--csv"]
    return [
        (["redis-benchmark", "-h", address, "-p", "6379", *options], check_benchmark),
        (["redis-cli", "-h", address, "set", "key", VALUE], check("OK")),
        (["redis-cli", "-h", address, "get", "key"], check(VALUE)),
    ]


PAIRS = {
    "netperf": Pair(12865, lambda _: ["netserver", "-D", "-f", "-4"], netperf),
    # its handler leaves by longjmp() and exits with 1
    "iperf3": Pair(5201, lambda _: ["iperf3", "-s", "--forceflush"], iperf3, status=1),
    "tcpbench": Pair(12345, lambda _: ["tcpbench", "-s", "-4"], tcpbench, status=0),
    "curl": Pair(8080, nginx, curl(8080), status=0),
    "http.server": Pair(8000, http_server, curl(8000)),
    "redis": Pair(6379, redis_server, redis, status=0),
}


def serve_on_the_stack(topology: Topology, pair: Pair, harms: tuple[str, ...]) -> None:
    """Run a server on the stack, and its clients on Linux."""
    server = topology.boot(impair(*harms), pair.server(topology.directory))
    topology.await_port(pair.port)
    for client, check in pair.clients(topology.directory, STACK):
        check(once_free(partial(topology.on, "left", *client)))
    assert topology.stop(server) == pair.status


def _on_the_stack(topology: Topology, client: Sequence[str], harms: tuple[str, ...]) -> str:
    return finish(topology, topology.boot(impair(*harms), client), "boot.log")


def connect_from_the_stack(topology: Topology, pair: Pair, harms: tuple[str, ...]) -> None:
    """Run a server on Linux, and its clients on the stack."""
    topology.start("left", *pair.server(topology.directory), log="server.log")
    topology.await_port(pair.port, "left")
    for client, check in pair.clients(topology.directory, LINUX):
        check(once_free(partial(_on_the_stack, topology, client, harms)))


@NETWORKS
@pytest.mark.parametrize("name", PAIRS)
def test_a_server_on_the_stack(topology: Topology, name: str, harms: tuple[str, ...]) -> None:
    serve_on_the_stack(topology, PAIRS[name], harms)


@NETWORKS
@pytest.mark.parametrize("name", PAIRS)
def test_clients_on_the_stack(topology: Topology, name: str, harms: tuple[str, ...]) -> None:
    connect_from_the_stack(topology, PAIRS[name], harms)


def sshd(topology: Topology, host: str, address: str) -> list[str]:
    """Start sshd on a host; return options of a client that logs in without prompts."""
    directory = topology.directory
    for name in ("host_key", "key"):
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(directory / name))
    conf = directory / "sshd_config"
    conf.write_text(SSHD.format(address=address, directory=directory), encoding="utf-8")
    Path("/run/sshd").mkdir(exist_ok=True)
    topology.start(host, "/usr/sbin/sshd", "-D", "-e", "-f", str(conf), log="sshd.log")
    topology.await_line("sshd.log", "Server listening")
    options = ["Port=2222", "StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "BatchMode=yes",
               "LogLevel=ERROR"]  # fmt: skip
    return ["-F", "none", "-i", str(directory / "key"), *(word for option in options for word in ("-o", option))]


@NETWORKS
def test_ssh_through_the_stack_as_a_router(topology: Topology, harms: tuple[str, ...]) -> None:
    router = {"if.tap1.inet": "10.99.1.2/24", "net.inet.ip.forwarding": "1"}
    topology.boot({**router, **impair(*harms), **impair(*harms, device="tap1")})
    options = sshd(topology, "right", RIGHT)
    directory = topology.directory
    digest = page(directory)
    topology.on("left", "scp", *options, f"{directory}/page", f"root@{RIGHT}:{directory}/up")
    topology.on("left", "scp", *options, f"root@{RIGHT}:{directory}/up", f"{directory}/down")
    for copy in ("up", "down"):
        assert hashlib.sha256((directory / copy).read_bytes()).hexdigest() == digest
    assert digest in topology.on("left", "ssh", *options, f"root@{RIGHT}", f"sha256sum {directory}/up")


@NETWORKS
def test_ssh_on_the_stack(topology: Topology, harms: tuple[str, ...]) -> None:
    options = sshd(topology, "left", LINUX)
    digest = page(topology.directory)
    os.chown(topology.directory / "key", 65534, 65534)
    command = f"sha256sum {topology.directory}/page; wc -c <{topology.directory}/page"
    child = topology.boot(impair(*harms), ["ssh", *options, f"root@{LINUX}", command])
    output = finish(topology, child, "boot.log")
    assert digest in output
    assert f"\n{SIZE}\n" in output
