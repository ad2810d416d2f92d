# SPDX-License-Identifier: BSD-2-Clause
"""Servers and clients that people run, on the stack and against it, over a good network and a bad one."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.stack.topology import PYTHON, Topology, run

STACK, LINUX, RIGHT = "10.99.0.2", "10.99.0.1", "10.99.1.1"
SIZE = 3_000_000
NETWORKS = pytest.mark.parametrize("harms", [(), ("loss", "reorder")], ids=["good", "bad"])
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
"""


def impair(*harms: str, device: str = "tap0") -> dict[str, str]:
    """Tunables that harm one packet in a hundred, in both directions."""
    return {f"if.{device}.impair.{harm}": "10000" for harm in harms}


def page(topology: Topology) -> str:
    """Writes a page of random bytes to the topology's directory; its digest."""
    data = random.Random(7).randbytes(SIZE)
    (topology.directory / "page").write_bytes(data)
    return hashlib.sha256(data).hexdigest()


def nginx(topology: Topology, master: str = "off") -> list[str]:
    """Writes a configuration in which one process does everything; the command."""
    conf = topology.directory / "nginx.conf"
    conf.write_text(NGINX.format(directory=topology.directory, master=master), encoding="utf-8")
    return ["/usr/sbin/nginx", "-e", "stderr", "-c", str(conf)]


def fetched(topology: Topology, address: str, port: int) -> list[str]:
    """Digests of the page, fetched by curl on Linux ten times by two connections that stay open."""
    url, out = f"http://{address}:{port}/page", topology.directory / "fetched"

    def fetch(index: int) -> list[str]:
        files = [f"{out}-{index}-{n}" for n in range(5)]
        outputs = [word for name in files for word in ("-o", name, url)]
        topology.on("left", "curl", "-sSf", "--retry", "5", "--retry-connrefused", "--max-time", "120", *outputs)
        return [hashlib.sha256(Path(name).read_bytes()).hexdigest() for name in files]

    with ThreadPoolExecutor(2) as pool:
        return [digest for digests in pool.map(fetch, range(2)) for digest in digests]


@NETWORKS
def test_nginx_on_the_stack_serves_curl(topology: Topology, harms: tuple[str, ...]) -> None:
    digest = page(topology)
    server = topology.boot(impair(*harms), nginx(topology))
    assert fetched(topology, STACK, 8080) == [digest] * 10
    assert topology.stop(server) == 0, topology.said("boot.log")


@NETWORKS
def test_curl_on_the_stack_fetches_from_nginx(topology: Topology, harms: tuple[str, ...]) -> None:
    digest = page(topology)
    topology.start("left", *nginx(topology), log="nginx.log")
    out = topology.directory / "fetched"
    words = ["curl", "-sSf", "--retry", "5", "--retry-connrefused", "-o", str(out), f"http://{LINUX}:8080/page"]
    client = topology.boot(impair(*harms), words)
    assert client.wait(timeout=120) == 0, topology.said("boot.log")
    assert hashlib.sha256(out.read_bytes()).hexdigest() == digest


def test_nginx_with_worker_processes_says_why_it_cannot(topology: Topology) -> None:
    topology.boot({}, nginx(topology, master="on"))
    topology.await_line("boot.log", "the stack is in the parent of this process")


@NETWORKS
def test_a_threaded_web_server(topology: Topology, harms: tuple[str, ...]) -> None:
    digest = page(topology)
    words = [PYTHON, "-u", "-m", "http.server", "-d", str(topology.directory), "8000"]
    topology.boot(impair(*harms), words)
    topology.await_line("boot.log", "Serving HTTP")
    assert fetched(topology, STACK, 8000) == [digest] * 10


def redis_server(directory: Path) -> list[str]:
    """The command of a server that keeps nothing and listens on every address."""
    return ["redis-server", "--port", "6379", "--bind", "*", "--protected-mode", "no", "--save", "",
            "--appendonly", "no", "--dir", str(directory)]  # fmt: skip


def redis_benchmark(address: str) -> list[str]:
    """The command of a benchmark with pipelines and large values, whose answers it checks."""
    return ["redis-benchmark", "-h", address, "-p", "6379", "-n", "5000", "-c", "20", "-P", "4", "-d", "2000", "-t",
            "set,get,lrange_100,mset", "--csv"]  # fmt: skip


def check_benchmark(report: str) -> None:
    """A line with a rate for each of the tests."""
    rows = [line.replace('"', "").split(",") for line in report.splitlines() if line.startswith('"')]
    rates = {row[0].split(" ")[0]: float(row[1]) for row in rows if row[0] != "test"}
    assert {"SET", "GET", "LRANGE_100", "MSET"} <= set(rates), report
    assert all(rate > 0 for rate in rates.values()), report


@NETWORKS
def test_redis_on_the_stack(topology: Topology, harms: tuple[str, ...]) -> None:
    server = topology.boot(impair(*harms), redis_server(topology.directory))
    topology.await_line("boot.log", "Ready to accept connections")
    check_benchmark(topology.on("left", *redis_benchmark(STACK)))
    value = random.Random(3).randbytes(20_000).hex()
    cli = ["redis-cli", "-h", STACK]
    topology.on("left", *cli, "set", "key", value)
    assert topology.on("left", *cli, "get", "key").strip() == value
    assert topology.stop(server) == 0


@NETWORKS
def test_redis_benchmark_on_the_stack(topology: Topology, harms: tuple[str, ...]) -> None:
    topology.start("left", *redis_server(topology.directory), log="redis.log")
    topology.await_line("redis.log", "Ready to accept connections")
    client = topology.boot(impair(*harms), redis_benchmark(LINUX))
    assert client.wait(timeout=120) == 0, topology.said("boot.log")
    check_benchmark(topology.said("boot.log"))


def sshd(topology: Topology, host: str, address: str) -> list[str]:
    """Starts sshd on a host; the words of a client that logs in without questions."""
    directory = topology.directory
    for name in ("host_key", "key"):
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(directory / name))
    conf = directory / "sshd_config"
    conf.write_text(SSHD.format(address=address, directory=directory), encoding="utf-8")
    Path("/run/sshd").mkdir(exist_ok=True)
    topology.start(host, "/usr/sbin/sshd", "-D", "-e", "-f", str(conf), log="sshd.log")
    topology.await_line("sshd.log", "Server listening")
    options = ["StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "BatchMode=yes", "LogLevel=ERROR"]
    return ["ssh", "-F", "none", "-i", str(directory / "key"), "-p", "2222",
            *(word for option in options for word in ("-o", option)), f"root@{address}"]  # fmt: skip


@NETWORKS
def test_ssh_through_the_stack_as_a_router(topology: Topology, harms: tuple[str, ...]) -> None:
    router = {"if.tap1.inet": "10.99.1.2/24", "net.inet.ip.forwarding": "1"}
    topology.boot({**router, **impair(*harms), **impair(*harms, device="tap1")})
    client = sshd(topology, "right", RIGHT)
    digest = page(topology)
    command = ["ip", "netns", "exec", f"{topology.name}-left", *client, f"cat {topology.directory}/page"]
    page_there = subprocess.run(command, capture_output=True, check=True, timeout=120).stdout
    assert hashlib.sha256(page_there).hexdigest() == digest


@NETWORKS
def test_ssh_on_the_stack(topology: Topology, harms: tuple[str, ...]) -> None:
    client = sshd(topology, "left", LINUX)
    digest = page(topology)
    os.chown(topology.directory / "key", 65534, 65534)
    command = f"sha256sum {topology.directory}/page; wc -c <{topology.directory}/page"
    child = topology.boot(impair(*harms), [*client, command])
    assert child.wait(timeout=60) == 0, topology.said("boot.log")
    assert digest in topology.said("boot.log")
    assert f"\n{SIZE}\n" in topology.said("boot.log")
