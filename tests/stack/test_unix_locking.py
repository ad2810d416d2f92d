# SPDX-License-Identifier: BSD-2-Clause
"""Every locking strategy of UNIX sockets and of descriptors carries the load of unixbench; impossible ones have a
message.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.stack.topology import PYTHON, Installed, Topology, run

STACK, LINUX = "10.99.0.2", "10.99.0.1"

STRATEGIES = {
    "giant": "rw",
    "single": "mutex",
    "global": "mutex",
    "rwlock": "rw",
    "pair": "lockless",
    "socket": "mutex",
}


def unixbench(installed: Installed, directory: Path, tunables: Mapping[str, str], *words: str) -> str:
    """The output of the load on a separate stack."""
    conf = directory / "loader.conf"
    conf.write_text("".join(f'{name}="{value}"\n' for name, value in tunables.items()), encoding="ascii")
    return run(f"{installed.prefix}/bin/bootstack", "-c", str(conf), "--", f"{installed.prefix}/bin/unixbench", *words)


@pytest.mark.parametrize(
    ("strategy", "fd_lock", "workload"),
    [*((*locks, "mysql") for locks in STRATEGIES.items()), ("single", "lockless", "simple")],
)
def test_a_load_with_each_strategy(
    installed: Installed, tmp_path: Path, strategy: str, fd_lock: str, workload: str
) -> None:
    tunables = {"unix.sockets": "stack", "unix.locking": strategy, "fd.lock": fd_lock}
    output = unixbench(installed, tmp_path, tunables, "-w", workload, "-n", "4", "-t", "0.2")
    rate = re.fullmatch(r"([0-9]+) transactions/s\n[0-9.]+ CPU seconds\n", output)
    assert rate is not None, output
    assert int(rate[1]) > 0


@pytest.mark.parametrize(
    ("tunables", "reason"),
    [
        (
            {"debug.mpsafenet": "0", "unix.locking": "pair"},
            'unix.locking="pair" with debug.mpsafenet="0": every socket call holds Giant',
        ),
        ({"unix.locking": "none"}, "unix.locking: 'none' is none of giant single global rwlock pair socket"),
        ({"fd.lock": "none"}, "fd.lock: 'none' is none of mutex rw lockless"),
    ],
)
def test_what_cannot_be_is_explained(
    installed: Installed, tmp_path: Path, tunables: dict[str, str], reason: str
) -> None:
    with pytest.raises(AssertionError, match=reason):
        unixbench(installed, tmp_path, {"unix.sockets": "stack", **tunables}, "-t", "0.1")


@pytest.mark.parametrize(
    "words",
    [
        ("-w", "oracle"),
        ("-n", "0"),
        ("-n", "8x"),
        ("-t", "nan"),
        ("-s",),
        ("-p", "5302"),
        ("-s", "-c", "127.0.0.1", "-p", "5302"),
        ("-c", "localhost", "-p", "5302"),
    ],
    ids=" ".join,
)
def test_a_wrong_call_prints_the_usage(installed: Installed, words: tuple[str, ...]) -> None:
    with pytest.raises(AssertionError, match="usage: unixbench"):
        run(f"{installed.prefix}/bin/unixbench", *words)


ASK = """
import random, socket
def ask(line):
    with socket.create_connection(("10.99.0.2", 5302)) as sock:
        sock.settimeout(60)
        try:
            sock.sendall(line)
            sock.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: sock.recv(1000), b""))
        except TimeoutError:
            raise
        except OSError:  # reset by the server, which has had more than a line
            return b""
random.seed(2006)
refused = b'unixbench: unknown load; an example is "mysql 8 2"\\n'
words = [b"mysql", b"simple", b"8", b"2", b"-1", b"nan", b"1e9", b"%s%n", b"\\0", b"x" * 200]
for line in [b"", b"\\n", b"mysql 8\\n", b"mysql 0 1\\n", b"mysql 8 nan\\n", b"mysql 99999 1\\n", b"oracle 8 1\\n"] + [
    b" ".join(random.choices([*words[4:], random.randbytes(9)], k=random.randint(1, 4))) + b"\\n" for _ in range(200)
]:
    assert ask(line) in (b"", refused), line
assert ask(b"simple 2 0.1\\n").endswith(b" CPU seconds\\n")
print("refused")
"""


def test_a_server_runs_the_requested_load(topology: Topology) -> None:
    program = f"{topology.installed.prefix}/bin/unixbench"
    child = topology.boot({"unix.sockets": "stack", "unix.locking": "global"}, [program, "-s", "-p", "5302"])
    topology.await_line("boot.log", "unixbench: listening on port 5302")
    for workload, clients in (("mysql", "3"), ("simple", "1")):
        output = topology.on("left", program, "-c", STACK, "-p", "5302", "-w", workload, "-n", clients, "-t", "0.2")
        assert re.fullmatch(r"[1-9][0-9]* transactions/s\n[0-9.]+ CPU seconds\n", output)
    assert topology.on("left", PYTHON, "-c", ASK) == "refused\n"
    assert "unixbench." not in topology.ask("netstat", "-f", "unix")
    assert topology.stop(child) == -15
    with pytest.raises(AssertionError, match="unixbench: connect: "):
        topology.on("left", program, "-c", LINUX, "-p", "5302")
