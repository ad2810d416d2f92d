# SPDX-License-Identifier: BSD-2-Clause
"""What the stack does in a second, with Linux's own sockets beside it.

`./dev bench stack [--quick] [--rounds 5] [--seconds 2] [ROW ...]` prints a table and writes var/bench/stack.json with
every sample.  Rounds are interleaved: each measures every row on both sides once, so that what changes on the machine
meanwhile changes both.  The client runs on the first CPU and the server on the last; where both are one process, in
memory, it has both, and forwarding has the last alone.  The times of the server's CPU come from /proc/stat.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.stack.topology import ROOT, Installed, Topology, run

STACK, LINUX = "10.99.0.2", "10.98.0.2"
PORT = "5999"
CLIENT_CPU, SERVER_CPU = "0", str((os.cpu_count() or 1) - 1)
VAR = Path(os.environ.get("PERFWEB_VAR", ROOT / "var"))


@dataclass(frozen=True)
class Row:
    """One thing that is measured: how, in what unit, and with what arguments of tcpload or tunables of the stack."""

    measure: Callable[[Bench, Row, str], float]
    unit: str
    load: tuple[str, ...] = ()
    tunables: dict[str, str] = field(default_factory=dict)
    link: tuple[str, ...] = ()  # what Linux's loopback is set to, to be like the tunables
    scale: float = 1.0
    sides: tuple[str, ...] = ("stack", "linux")


class Bench:
    """The hosts of a topology, and a plain link between left and right for Linux's own sockets."""

    def __init__(self, topology: Topology, seconds: float) -> None:
        self.topology, self.seconds = topology, seconds
        self.bin = f"{topology.installed.prefix}/bin"
        left, right = f"{topology.name}-left", f"{topology.name}-right"
        run("ip", "-n", left, "link", "add", "plain0", "type", "veth", "peer", "name", "plain0", "netns", right)
        for host, address in ((left, "10.98.0.1/24"), (right, f"{LINUX}/24")):
            run("ip", "-n", host, "address", "add", address, "dev", "plain0")
            run("ip", "-n", host, "link", "set", "plain0", "up")
            run("ip", "-n", host, "link", "set", "lo", "up")

    def rate(self, said: str) -> float:
        """The number that tcpload printed."""
        return float(said.split(maxsplit=1)[0])

    def client(self, row: Row, address: str) -> float:
        """A load from left to a server that runs."""
        words = [f"{self.bin}/tcpload", *row.load, "-t", str(self.seconds), address, PORT]
        with pinned(CLIENT_CPU):
            return self.rate(self.topology.on("left", *words)) * row.scale

    def start_server(self, row: Row, side: str) -> subprocess.Popen[str]:
        """tcpload's server, on the stack or on the Linux host to the right."""
        words = [f"{self.bin}/tcpload", "serve", PORT]
        if side == "linux":
            with pinned(SERVER_CPU):
                server = self.topology.start("right", *words, log="server.log")
        else:
            with pinned(SERVER_CPU):
                server = self.topology.boot({"machine.cpus": SERVER_CPU, **row.tunables}, words)
        self.await_server("right" if side == "linux" else "left", LINUX if side == "linux" else STACK)
        return server

    def await_server(self, host: str, address: str) -> None:
        """Returns when the server answers."""
        until = time.monotonic() + 20
        ask = (f"{self.bin}/tcpload", "rr", "-t", "0.01", address, PORT)
        while "transactions" not in self.topology.on(host, *ask, check=False):
            assert time.monotonic() < until, "the server does not answer"
            time.sleep(0.05)


@contextlib.contextmanager
def pinned(cpu: str) -> Iterator[None]:
    """What is started meanwhile runs on one CPU."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {int(cpu)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def busy(cpu: str) -> float:
    """Seconds that a CPU has been at work since boot, interrupts included."""
    line = next(line for line in Path("/proc/stat").read_text("ascii").splitlines() if line.startswith(f"cpu{cpu} "))
    user, nice, system, _, _, irq, softirq = (int(word) for word in line.split()[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def over_veth(bench: Bench, row: Row, side: str) -> float:
    """A rate between left and a server."""
    server = bench.start_server(row, side)
    try:
        return bench.client(row, LINUX if side == "linux" else STACK)
    finally:
        bench.topology.stop(server)


def cpu_over_veth(bench: Bench, row: Row, side: str) -> float:
    """Seconds of the server's CPU for a unit of what tcpload counts."""
    server = bench.start_server(row, side)
    try:
        before, start = busy(SERVER_CPU), time.monotonic()
        rate = bench.client(row, LINUX if side == "linux" else STACK)
        assert rate > 0, "nothing was moved"
        return (busy(SERVER_CPU) - before) / (rate * (time.monotonic() - start))
    finally:
        bench.topology.stop(server)


def in_memory(bench: Bench, row: Row, side: str) -> float:
    """A rate between two sockets of one process, by the mirror of an interface in memory or by Linux's loopback."""
    load = [f"{bench.bin}/tcpload", "self", *row.load, "-t", str(bench.seconds)]
    if side == "linux":
        for words in row.link:
            run("ip", "netns", "exec", f"{bench.topology.name}-right", *words.split())
        return bench.rate(bench.topology.on("right", *load, "127.0.0.1", PORT)) * row.scale
    conf = bench.topology.directory / "memory.conf"
    tunables = {"if.mem0.inet": "10.97.0.1/24", "if.mem0.wire": "mirror", **row.tunables}
    conf.write_text("".join(f'{name}="{value}"\n' for name, value in tunables.items()), encoding="ascii")
    return bench.rate(run(f"{bench.bin}/bootstack", "-c", str(conf), "--", *load, "10.97.0.7", PORT)) * row.scale


def forwarding(bench: Bench, row: Row, _side: str) -> float:
    """Packets that go from a source in memory to a sink, for each second that a CPU works on them."""
    child = bench.topology.boot({
        "machine.cpus": SERVER_CPU,
        "net.inet.ip.forwarding": "1",
        "if.mem0.inet": "10.97.0.1/24",
        "if.mem0.source": "from=10.97.0.2 to=10.97.1.2 flows=64",
        "if.mem1.inet": "10.97.1.1/24",
        **row.tunables,
    })  # fmt: skip
    try:
        before = (_packets(bench), _cpu(child.pid))
        time.sleep(bench.seconds)
        after = (_packets(bench), _cpu(child.pid))
        return (after[0] - before[0]) / (after[1] - before[1]) * row.scale
    finally:
        bench.topology.stop(child)


def _packets(bench: Bench) -> int:
    # The source leaves the control socket little of its CPU.
    for _ in range(50):
        said = bench.topology.ask("sysctl", "if.mem1.stats.opackets", check=False)
        if said:
            return int(said.split()[1])
    raise AssertionError("the stack does not answer")


def _cpu(pid: int) -> float:
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text("ascii").split()[0]) for thread in threads) / 1e9


GBIT = 8e-9
LO_1500 = ("ip link set lo mtu 1500", "ethtool -K lo tso off gso off gro off")
LO_64K = ("ip link set lo mtu 65536", "ethtool -K lo tso on gso on gro on")
CHECKSUMS, SEGMENTS = {"if.mem0.offload": "1"}, {"if.mem0.offload": "2"}
ROWS = {
    "bulk in, 1 stream": Row(over_veth, "Gbit/s", ("in",), scale=GBIT),
    "bulk in, 4 streams": Row(over_veth, "Gbit/s", ("in", "-n", "4"), scale=GBIT),
    "bulk out, 1 stream": Row(over_veth, "Gbit/s", ("out",), scale=GBIT),
    "bulk out, 4 streams": Row(over_veth, "Gbit/s", ("out", "-n", "4"), scale=GBIT),
    "request/response, 1": Row(over_veth, "1000/s", ("rr",), scale=1e-3),
    "request/response, 16": Row(over_veth, "1000/s", ("rr", "-n", "16"), scale=1e-3),
    "connect+request+close, 1": Row(over_veth, "1000/s", ("crr",), scale=1e-3),
    "connect+request+close, 8": Row(over_veth, "1000/s", ("crr", "-n", "8"), scale=1e-3),
    "CPU, bulk in": Row(cpu_over_veth, "s/GB", ("in",), scale=1e-9),
    "CPU, bulk out": Row(cpu_over_veth, "s/GB", ("out",), scale=1e-9),
    "CPU, request/response": Row(cpu_over_veth, "us", ("rr", "-n", "16"), scale=1e-6),
    "memory: bulk, MTU 1500": Row(in_memory, "Gbit/s", ("in",), CHECKSUMS, LO_1500, GBIT),
    "memory: bulk, 64 K": Row(in_memory, "Gbit/s", ("in",), SEGMENTS, LO_64K, GBIT),
    "memory: request/response, 1": Row(in_memory, "1000/s", ("rr",), SEGMENTS, LO_64K, 1e-3),
    "memory: request/response, 64": Row(in_memory, "1000/s", ("rr", "-n", "64"), SEGMENTS, LO_64K, 1e-3),
    "memory: forward": Row(forwarding, "Mpps/core", scale=1e-6, sides=("stack",)),
    "memory: forward, fast": Row(
        forwarding, "Mpps/core", tunables={"net.inet.ip.fastforwarding": "1"}, scale=1e-6, sides=("stack",)
    ),
}


@dataclass
class Result:
    """The samples of a row."""

    unit: str
    samples: dict[str, list[float]]

    def cell(self, side: str) -> str:
        """The median, and the median distance from it."""
        samples = self.samples.get(side)
        if not samples:
            return f"{'':>9} {'':>7}"
        median = statistics.median(samples)
        spread = statistics.median(abs(sample - median) for sample in samples)
        return f"{median:>9.3f} {'±' + format(spread, '.3f'):>7}"

    def ratio(self) -> str:
        """The stack's median in Linux's."""
        if not all(self.samples.get(side) for side in ("stack", "linux")):
            return ""
        return f"{statistics.median(self.samples['stack']) / statistics.median(self.samples['linux']):.2f}"


def measure(names: Sequence[str], rounds: int, seconds: float) -> dict[str, Result]:
    """All rows, in rounds."""
    results = {name: Result(ROWS[name].unit, {side: [] for side in ROWS[name].sides}) for name in names}
    installed = Installed()
    try:
        with Topology(installed) as topology:
            bench = Bench(topology, seconds)
            for turn in range(rounds):
                print(f"round {turn + 1} of {rounds}", file=sys.stderr, flush=True)
                for name in names:
                    for side in ROWS[name].sides:
                        results[name].samples[side].append(ROWS[name].measure(bench, ROWS[name], side))
    finally:
        installed.remove()
    return results


def report(results: dict[str, Result]) -> str:
    """The table."""
    lines = [f"{'':<30} {'unit':<10} {'stack':>9} {'':>7} {'Linux':>9} {'':>7} {'ratio':>6}"]
    for name, result in results.items():
        cells = f"{result.cell('stack')} {result.cell('linux')} {result.ratio():>6}"
        lines.append(f"{name:<30} {result.unit:<10} {cells}".rstrip())
    return "\n".join(lines)


def write_json(results: dict[str, Result], seconds: float) -> Path:
    """Every sample, and what they were measured on."""
    path = VAR / "bench" / "stack.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    machine = {
        "kernel": platform.release(), "cpus": os.cpu_count(), "load": os.getloadavg()[0],
        "client_cpu": CLIENT_CPU, "server_cpu": SERVER_CPU, "seconds": seconds,
    }  # fmt: skip
    rows = {name: asdict(result) for name, result in results.items()}
    path.write_text(json.dumps({"machine": machine, "rows": rows}, indent=1) + "\n", encoding="utf-8")
    return path


def main(argv: Sequence[str]) -> int:
    """The command line; its exit status."""
    parser = argparse.ArgumentParser(
        prog="./dev bench stack", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="one round of half a second each: a look, no measurement")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each sample")
    parser.add_argument("rows", nargs="*", metavar="ROW", help="words of the names of rows; all unless named")
    options = parser.parse_args(argv)
    names = [name for name in ROWS if not options.rows or any(word in name for word in options.rows)]
    if not names:
        parser.error(f"no such row; there are: {'; '.join(ROWS)}")
    rounds, seconds = (1, 0.5) if options.quick else (options.rounds, options.seconds)
    results = measure(names, rounds, seconds)
    print(report(results))
    print(f"samples: {write_json(results, seconds)}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
