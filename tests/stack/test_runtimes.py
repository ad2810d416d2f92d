# SPDX-License-Identifier: BSD-2-Clause
"""Servers and clients of language runtimes, and memcached: each end on the stack and the other one on Linux."""

from __future__ import annotations

import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.gate.durations import cache
from tests.stack.test_programs import LINUX, STACK, finish
from tests.stack.test_servers import (
    NETWORKS,
    Check,
    Pair,
    connect_from_the_stack,
    curl,
    nginx,
    page,
    serve_on_the_stack,
)
from tests.stack.topology import PATIENCE, PYTHON, Topology, impair, run

PROGRAMS = Path(__file__).parent / "programs"
# Less code is compiled while the program runs, and fewer threads collect garbage.
JAVA = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto"]
GO = "/usr/bin/go"
GUNICORN = """
def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "application/octet-stream")])
    return environ["wsgi.file_wrapper"](open({page!r}, "rb"))
"""


def prints(text: str) -> Check:
    """A check that the last line of the output is a text."""

    def check(output: str) -> None:
        assert output.splitlines()[-2 if output.endswith("stack: down\n") else -1] == text, output

    return check


def copied(directory: Path, name: str) -> str:
    """A program, copied to where the unprivileged user can read it."""
    copy = directory / name
    shutil.copy(PROGRAMS / name, copy)
    copy.chmod(0o644)
    return str(copy)


def memcached(_directory: Path) -> list[str]:
    """A server with two worker threads."""
    return ["memcached", "-u", "nobody", "-p", "11211", "-U", "0", "-t", "2"]


def cache_client(directory: Path, address: str) -> list[tuple[list[str], Check]]:
    """Values up to 900 KB, on four connections."""
    return [([PYTHON, copied(directory, "cache.py"), address, "11211"], prints("exchanged 4"))]


def node(directory: Path, *words: str) -> list[str]:
    """The command that runs net.js."""
    return ["node", copied(directory, "net.js"), *words]


def node_client(directory: Path, address: str) -> list[tuple[list[str], Check]]:
    """Streams with half-closed ends, requests on persistent connections, and a refused connection."""
    return [(node(directory, "connect", address, "7100"), prints("exchanged"))]


@functools.cache
def echo() -> dict[str, bytes]:
    """The files of Echo.java, compiled once for all tests."""
    with tempfile.TemporaryDirectory() as directory:
        run("javac", "-proc:none", "-d", directory, str(PROGRAMS / "Echo.java"))
        return {path.name: path.read_bytes() for path in Path(directory).iterdir()}


def java(directory: Path, *words: str) -> list[str]:
    """The command that runs Echo.java, compiled, from the directory."""
    if not (directory / "Echo.class").exists():
        for name, content in echo().items():
            (directory / name).write_bytes(content)
    return [*JAVA, "-cp", str(directory), "Echo", *words]


def java_client(directory: Path, address: str) -> list[tuple[list[str], Check]]:
    """Ten connections of one selector."""
    return [(java(directory, "connect", address, "7000"), prints("exchanged 10"))]


def gunicorn(directory: Path) -> list[str]:
    """Two workers that send the page."""
    (directory / "pages.py").write_text(GUNICORN.format(page=str(directory / "page")), encoding="utf-8")
    words = ["gunicorn", "-w", "2", "-b", "0.0.0.0:8001", "-p", str(directory / "gunicorn.pid")]
    return [*words, "--chdir", str(directory), "pages:application"]


PAIRS = {
    "memcached": Pair(11211, memcached, cache_client, status=0),
    "node": Pair(7100, lambda directory: node(directory, "serve", "7100"), node_client, status=0),
    "java": Pair(7000, lambda directory: java(directory, "serve", "7000"), java_client, status=143),
    "gunicorn": Pair(8001, gunicorn, curl(8001), status=0),
}


@NETWORKS
@pytest.mark.parametrize("name", PAIRS)
def test_a_server_on_the_stack(topology: Topology, name: str, harms: tuple[str, ...]) -> None:
    serve_on_the_stack(topology, PAIRS[name], harms)


@NETWORKS
@pytest.mark.parametrize("name", PAIRS)
def test_clients_on_the_stack(topology: Topology, name: str, harms: tuple[str, ...]) -> None:
    connect_from_the_stack(topology, PAIRS[name], harms)


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The HTTP server and client in Go."""
    directory = tmp_path_factory.mktemp("go")
    environment = {"PATH": "/usr/bin:/bin", "CGO_ENABLED": "0", "HOME": str(directory), "GOCACHE": str(cache("go"))}
    program = directory / "web"
    subprocess.run([GO, "build", "-o", program, PROGRAMS / "web.go"], env=environment, check=True, timeout=PATIENCE)
    return str(program)


@NETWORKS
def test_a_client_in_go_reads_from_the_stack(topology: Topology, web: str, harms: tuple[str, ...]) -> None:
    digest = page(topology.directory)
    topology.boot(impair(*harms), nginx(topology.directory))
    topology.await_port(8080)
    assert topology.on("left", web, "fetch", "4", f"http://{STACK}:8080/page").split() == [digest] * 4


@NETWORKS
def test_a_server_in_go_sends_to_the_stack(topology: Topology, web: str, harms: tuple[str, ...]) -> None:
    topology.start("left", web, "serve", "8080", str(topology.directory), log="server.log")
    topology.await_port(8080, "left")
    for client, check in curl(8080)(topology.directory, LINUX):
        check(finish(topology, topology.boot(impair(*harms), client), "boot.log"))


@pytest.mark.parametrize(("options", "status"), [((), 0), (("--strict",), 2)], ids=["", "strict"])
def test_a_program_in_go_does_not_use_the_stack(
    topology: Topology, web: str, options: tuple[str, ...], status: int
) -> None:
    digest = page(topology.directory)
    topology.start("left", PYTHON, "-m", "http.server", "-d", str(topology.directory), "8000", log="server.log")
    topology.await_port(8000, "left")
    conf = topology.directory / "loader.conf"
    conf.write_text('boot_mute="1"\n', encoding="ascii")
    bootstack = f"{topology.installed.prefix}/bin/bootstack"
    fetch = [web, "fetch", "1", "http://127.0.0.1:8000/page"]
    child = topology.start("left", bootstack, "-c", str(conf), *options, "--", *fetch, log="boot.log")
    assert child.wait(timeout=PATIENCE) == status
    output = topology.log("boot.log")
    assert output.count("Go") == 1, output
    assert (digest in output) == (status == 0), output
