# SPDX-License-Identifier: BSD-2-Clause
"""Servers that serve their connections in child processes, unmodified: each child is a client of the process with the
stack."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import time
from pathlib import Path

import pytest

from tests.stack.test_programs import STACK, finish
from tests.stack.test_runtimes import gunicorn
from tests.stack.test_servers import NETWORKS, nginx, page
from tests.stack.topology import PATIENCE, PYTHON, UID, Topology, impair, run

POSTGRES = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)))
PORT = 5433
FORKING_SERVER = """
import socketserver, sys

class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while data := self.request.recv(65536):
            self.request.sendall(data)

class Server(socketserver.ForkingTCPServer):
    allow_reuse_address = True

Server(("0.0.0.0", 7777), Echo).serve_forever()
"""
INETD = """
import socket, subprocess

listener = socket.create_server(("0.0.0.0", 7777))
children = []
for _ in range(8):
    with listener.accept()[0] as connection:
        children.append(subprocess.Popen(["sh", "-c", "cat"], stdin=connection, stdout=connection))
for child in children:
    assert child.wait() == 0
"""
ECHO_CLIENT = """
import os, socket, sys, threading

def exchange():
    data = os.urandom(200_000)
    with socket.create_connection((sys.argv[1], 7777), timeout=60) as connection:
        threading.Thread(target=lambda: (connection.sendall(data), connection.shutdown(socket.SHUT_WR))).start()
        received = b"".join(iter(lambda: connection.recv(65536), b""))
    results.append(received == data)

results = []
threads = [threading.Thread(target=exchange) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(results.count(True))
"""
RELOADS = 3
# Prints the count and the digest of each page; a new connection for each.
LOAD = f"""
import hashlib, sys, urllib.request

for count in range(1, {10 * RELOADS + 11}):
    with urllib.request.urlopen(sys.argv[1], timeout=120) as response:
        print(count, hashlib.sha256(response.read()).hexdigest(), flush=True)
"""
DAEMON = """
import os, socket

listener = socket.create_server(("0.0.0.0", 7777))
if os.fork() > 0:
    os._exit(0)
os.setsid()
if os.fork() > 0:
    os._exit(0)
while True:
    connection, _ = listener.accept()
    with connection:
        while data := connection.recv(65536):
            connection.sendall(data)
"""


def fetch(topology: Topology, digest: str, count: int = 4) -> None:
    """The page by several connections at a time, compared by its digest."""
    files = [topology.directory / f"fetched-{n}" for n in range(count)]
    outputs = [word for file in files for word in ("-o", str(file), f"http://{STACK}:8080/page")]
    topology.on("left", "curl", "-sSf", "-Z", "--parallel-max", "4", "--max-time", "60", *outputs)
    assert [hashlib.sha256(file.read_bytes()).hexdigest() for file in files] == [digest] * count


def workers(master: int) -> set[int]:
    """The children of a process."""
    return {int(pid) for pid in Path(f"/proc/{master}/task/{master}/children").read_text(encoding="ascii").split()}


def replaced(master: int, before: set[int]) -> None:
    """Wait until a server has two workers, neither of which it had before."""
    until = time.monotonic() + PATIENCE
    while len(workers(master) - before) < 2:
        assert time.monotonic() < until, (before, workers(master))
        time.sleep(0.02)


def process(topology: Topology, name: str) -> int:
    """The process ID in a file that nginx has written."""
    return int((topology.directory / name).read_text(encoding="ascii"))


@NETWORKS
def test_nginx_has_two_workers_and_reloads(topology: Topology, harms: tuple[str, ...]) -> None:
    digest = page(topology.directory)
    server = topology.boot(impair(*harms), nginx(topology.directory, master="on"))
    topology.await_port(8080)
    fetch(topology, digest)
    master = process(topology, "nginx.pid")
    before = workers(master)
    assert len(before) == 2
    for _ in range(2):
        os.kill(master, signal.SIGHUP)
        fetch(topology, digest)
    assert topology.stop(server) == 0


@NETWORKS
@pytest.mark.parametrize("name", ["nginx", "gunicorn"])
def test_two_workers_are_replaced_under_load(topology: Topology, name: str, harms: tuple[str, ...]) -> None:
    digest = page(topology.directory)
    port, argv = 8080, nginx(topology.directory, master="on")
    if name == "gunicorn":
        port, argv = 8001, gunicorn(topology.directory)
    server = topology.boot(impair(*harms), argv)
    topology.await_port(port)
    load = topology.start("left", PYTHON, "-c", LOAD, f"http://{STACK}:{port}/page", log="load.log")
    master = process(topology, f"{name}.pid")
    for count in range(1, RELOADS + 1):
        topology.await_line("load.log", f"{10 * count} {digest}")
        before = workers(master)
        os.kill(master, signal.SIGHUP)
        replaced(master, before)
    assert load.wait(timeout=PATIENCE) == 0
    assert topology.stop(server) == 0


def test_nginx_replaces_a_worker_that_was_killed(topology: Topology) -> None:
    digest = page(topology.directory)
    server = topology.boot({}, nginx(topology.directory, master="on"))
    topology.await_port(8080)
    fetch(topology, digest)
    for worker in workers(process(topology, "nginx.pid")):
        os.kill(worker, signal.SIGKILL)
    fetch(topology, digest)
    assert topology.stop(server) == 0


def test_python_forks_for_each_connection(topology: Topology) -> None:
    topology.boot({}, [PYTHON, "-c", FORKING_SERVER])
    topology.await_port(7777)
    assert topology.on("left", PYTHON, "-c", ECHO_CLIENT, STACK).split() == ["8"]


def test_programs_serve_connections_as_standard_input_and_output(topology: Topology) -> None:
    server = topology.boot({}, [PYTHON, "-c", INETD])
    topology.await_port(7777)
    assert topology.on("left", PYTHON, "-c", ECHO_CLIENT, STACK).split() == ["8"]
    finish(topology, server, "boot.log")


def test_a_daemon_outlives_the_process_that_has_the_stack(topology: Topology) -> None:
    topology.boot({}, [PYTHON, "-c", DAEMON])
    topology.await_port(7777)
    assert topology.on("left", PYTHON, "-c", ECHO_CLIENT, STACK).split() == ["8"]


@pytest.fixture
def cluster(topology: Topology) -> Path:
    """An empty cluster of PostgreSQL that needs no password."""
    data = topology.directory / "data"
    user = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups"]
    run(*user, str(POSTGRES / "initdb"), "-D", str(data), "-A", "trust", "-U", "postgres", "--no-sync",
        "--encoding=UTF8", "--locale=C")  # fmt: skip
    with (data / "pg_hba.conf").open("a", encoding="ascii") as hba:
        hba.write("host all all 10.0.0.0/8 trust\n")
    with (data / "postgresql.conf").open("a", encoding="ascii") as conf:
        conf.write(f"port={PORT}\nlisten_addresses='0.0.0.0'\nunix_socket_directories='{topology.directory}'\n"
                   "fsync=off\nshared_buffers=16MB\n")  # fmt: skip
    return data


def await_postgresql(topology: Topology) -> None:
    """Wait until the server, which listens before it has started, accepts connections."""
    until = time.monotonic() + PATIENCE
    words = [str(POSTGRES / "pg_isready"), "-h", STACK, "-p", str(PORT)]
    while "accepting connections" not in (output := topology.on("left", *words, check=False)):
        assert time.monotonic() < until, output
        time.sleep(0.05)


@NETWORKS
def test_postgresql_serves_ten_clients(topology: Topology, cluster: Path, harms: tuple[str, ...]) -> None:
    server = topology.boot(impair(*harms), [str(POSTGRES / "postgres"), "-D", str(cluster)])
    topology.await_port(PORT)
    await_postgresql(topology)
    where = ["-h", STACK, "-p", str(PORT), "-U", "postgres"]
    topology.on("left", str(POSTGRES / "pgbench"), *where, "-i", "-s", "1", "-q", "postgres")
    output = topology.on("left", str(POSTGRES / "pgbench"), *where, "-c", "10", "-t", "20", "postgres")
    assert re.search(r"number of transactions actually processed: 200/200", output), output
    server.send_signal(signal.SIGINT)
    assert server.wait(timeout=60) == 0
