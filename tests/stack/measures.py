# SPDX-License-Identifier: BSD-2-Clause
"""The measurements of `./dev bench stack`: where programs run, and what is counted.

The client runs on the first CPU and the server, or the forwarding host, on the last; if both are one process, in
memory, it has both. Seconds of the server's CPU come from /proc/stat, so that they include the host's share of the
work.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.stack.topology import PATIENCE, TAP, Driver, Topology, run

STACK, LINUX = {4: "10.99.0.2", 6: "2001:db8::2"}, {4: "10.98.0.2", 6: "2001:db8:98::2"}
PORT, DISCARD = "5999", "9"
BEYOND = "10.50.0.1"  # behind right, by the stack's route and by Linux's: the destination of forwarded packets
CLIENT_CPU, SERVER_CPU = "0", str((os.cpu_count() or 1) - 1)


@dataclass(frozen=True)
class Sample:
    """Units per second, and seconds of the server's CPU for each."""

    rate: float
    cpu: float | None = None


@dataclass(frozen=True)
class Row:
    """A row: its measurement, its units, and arguments of a load or tunables of the stack."""

    measure: Callable[[Bench, Row, str], Sample]
    unit: str
    load: tuple[str, ...] = ()
    tunables: dict[str, str] = field(default_factory=dict)
    link: tuple[str, ...] = ()  # settings of Linux's loopback that equal the tunables
    scale: float = 1.0
    sides: tuple[str, ...] = ("stack", "linux")
    cpu_unit: str = ""
    cpu_scale: float = 1.0
    family: int = 4
    driver: Driver = TAP
    server: tuple[str, ...] = ()  # options of the load's server


class Bench:
    """The hosts of a topology, a plain link between left and right, and a Linux host that forwards between them."""

    def __init__(self, topology: Topology, seconds: float) -> None:
        self.topology, self.seconds = topology, seconds
        self.bin = f"{topology.installed.prefix}/bin"
        left, right = f"{topology.name}-left", f"{topology.name}-right"
        run("ip", "-n", left, "link", "add", "plain0", "type", "veth", "peer", "name", "plain0", "netns", right)
        for host, end in ((left, "1"), (right, "2")):
            run("ip", "-n", host, "address", "add", f"10.98.0.{end}/24", "dev", "plain0")
            run("ip", "-n", host, "address", "add", f"2001:db8:98::{end}/64", "dev", "plain0", "nodad")
            run("ip", "-n", host, "link", "set", "plain0", "up")
            run("ip", "-n", host, "link", "set", "lo", "up")
        # The stack's, and Linux's own, default: a distribution's may pace its segments.
        for host in ("left", "right"):
            topology.set_congestion(host, "cubic")

    def forwarder(self) -> str:
        """Make the Linux host, once; return its name. It works on the server's CPU, as the stack does (RPS)."""
        name = self.topology.host("linux")
        if (Path("/run/netns") / name).exists():
            return name
        self.topology.add_hosts("linux")
        for index, host in enumerate(("left", "right")):
            peer, data = self.topology.host(host), f"data{index}"
            run("ip", "-n", name, "link", "add", data, "type", "veth", "peer", "name", "plain1", "netns", peer)
            run("ip", "-n", name, "address", "add", f"10.96.{index}.2/24", "dev", data)
            run("ip", "-n", peer, "address", "add", f"10.96.{index}.1/24", "dev", "plain1")
            run("ip", "-n", name, "link", "set", data, "up")
            run("ip", "-n", peer, "link", "set", "plain1", "up")
            mask = f"{1 << int(SERVER_CPU):x}"
            self.topology.on("linux", "sh", "-c", f"echo {mask} > /sys/class/net/{data}/queues/rx-0/rps_cpus")
        self.topology.on("linux", "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        run("ip", "-n", name, "route", "add", "10.50.0.0/16", "via", "10.96.1.1")
        return name

    def rate(self, output: str) -> float:
        """The number that a load printed."""
        return float(output.split(maxsplit=1)[0])

    def client(self, row: Row, address: str) -> float:
        """Run a load from left to a running server."""
        words = [f"{self.bin}/tcpload", *row.load, "-t", str(self.seconds), address, PORT]
        with pinned(CLIENT_CPU):
            return self.rate(self.topology.on("left", *words))

    def start_server(self, row: Row, side: str) -> subprocess.Popen[str]:
        """tcpload's server, on the stack or on the Linux host to the right."""
        words = [f"{self.bin}/tcpload", "serve", *(("-6",) if row.family == 6 else ()), *row.server, PORT]
        if side == "linux":
            with pinned(SERVER_CPU):
                server = self.topology.start("right", *words, log="server.log")
        else:
            inet6 = {"if.tap0.inet6": f"{STACK[6]}/64", "net.inet6.ip6.dad_count": "0"}
            with pinned(SERVER_CPU):
                server = self.topology.boot({"machine.cpus": SERVER_CPU, **inet6, **row.tunables}, words)
        self.await_server((LINUX if side == "linux" else STACK)[row.family])
        return server

    def await_server(self, address: str) -> None:
        """Wait until the server answers."""
        until = time.monotonic() + PATIENCE
        ask = (f"{self.bin}/tcpload", "rr", "-t", "0.01", address, PORT)
        # empty: no listener; "0 transactions/s": no answer
        while not self.rate(self.topology.on("left", *ask, check=False) or "0 transactions/s"):
            assert time.monotonic() < until, "the server does not answer"
            time.sleep(0.05)

    def settings(self) -> dict[str, dict[str, str]]:
        """The settings of the Linux ends: congestion control, and the relevant features of the links."""
        found = {}
        for host, device in (("left", "data0"), ("left", "plain0"), ("right", "plain0")):
            features = json.loads(self.topology.on(host, "ethtool", "--json", "-k", device))[0]
            names = ("tx-checksumming", "rx-checksumming", "tcp-segmentation-offload",
                     "generic-segmentation-offload", "generic-receive-offload")  # fmt: skip
            found[f"{host} {device}"] = {name: "on" if features[name]["active"] else "off" for name in names}
            control = self.topology.on(host, "cat", "/proc/sys/net/ipv4/tcp_congestion_control")
            found[f"{host} {device}"]["tcp_congestion_control"] = control.strip()
        return found


@contextlib.contextmanager
def pinned(cpu: str) -> Iterator[None]:
    """A context in which new processes run on one CPU."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {int(cpu)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def busy(cpu: str) -> float:
    """Seconds that a CPU has been busy since boot, interrupts included."""
    line = next(line for line in Path("/proc/stat").read_text("ascii").splitlines() if line.startswith(f"cpu{cpu} "))
    user, nice, system, _, _, irq, softirq = (int(word) for word in line.split()[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def over_veth(bench: Bench, row: Row, side: str) -> Sample:
    """A rate between left and a server."""
    server = bench.start_server(row, side)
    try:
        before, start = busy(SERVER_CPU), time.monotonic()
        rate = bench.client(row, (LINUX if side == "linux" else STACK)[row.family])
        assert rate > 0, "nothing was moved"
        return Sample(rate, (busy(SERVER_CPU) - before) / (rate * (time.monotonic() - start)))
    finally:
        bench.topology.stop(server)


def in_memory(bench: Bench, row: Row, side: str) -> Sample:
    """A rate between two sockets of one process, by the mirror of an interface in memory or by Linux's loopback."""
    load = [f"{bench.bin}/tcpload", *row.load, "-t", str(bench.seconds)]
    if side == "linux":
        for words in row.link:
            bench.topology.on("right", *words.split())
        return Sample(bench.rate(bench.topology.on("right", *load, "127.0.0.1", PORT)))
    tunables = {"if.mem0.inet": "10.97.0.1/24", "if.mem0.wire": "mirror", **row.tunables}
    return Sample(bench.rate(_in_stack(bench, tunables, *load, "10.97.0.7", PORT)))


def by_path(bench: Bench, row: Row, side: str) -> Sample:
    """A rate between two UNIX-domain sockets of one process."""
    path = bench.topology.directory / "tcpload.sock"
    path.unlink(missing_ok=True)
    load = (f"{bench.bin}/tcpload", *row.load, "-t", str(bench.seconds), str(path), "0")
    return Sample(bench.rate(_with_unix(bench, row, side, *load)))


def by_unixbench(bench: Bench, row: Row, side: str) -> Sample:
    """Transactions of clients and a server in one process, and their CPU time."""
    output = _with_unix(bench, row, side, f"{bench.bin}/unixbench", *row.load, "-t", str(bench.seconds))
    rate, cpu = (float(line.split(maxsplit=1)[0]) for line in output.splitlines())
    return Sample(rate, cpu / (rate * bench.seconds))


def _with_unix(bench: Bench, row: Row, side: str, *words: str) -> str:
    """The output of a program whose UNIX-domain sockets are the stack's, or Linux's."""
    return run(*words) if side == "linux" else _in_stack(bench, {"unix.sockets": "stack", **row.tunables}, *words)


def _in_stack(bench: Bench, tunables: dict[str, str], *words: str) -> str:
    conf = bench.topology.directory / "memory.conf"
    conf.write_text("".join(f'{name}="{value}"\n' for name, value in tunables.items()), encoding="ascii")
    return run(f"{bench.bin}/bootstack", "-c", str(conf), "--", *words)


def datagrams(bench: Bench, row: Row, _side: str) -> Sample:
    """Datagrams per second that netblast sends to an interface in memory, or that netreceive gets from its source."""
    tool, *words = row.load
    tunables = {"if.mem0.inet": "10.97.0.1/24", **row.tunables}
    output = _in_stack(bench, tunables, f"{bench.bin}/{tool}", "-t", str(bench.seconds), *words)
    rates = re.findall(r"^(?:sent|received): .* rate: (\d+) ", output, re.MULTILINE)
    assert rates, f"{tool} moved nothing: {output}"
    return Sample(float(rates[0]))


def from_source(bench: Bench, row: Row, _side: str) -> Sample:
    """Packets of a source in memory that the counter of `row.load` counts, for each busy second of a CPU."""
    (counter,) = row.load
    child = bench.topology.boot({
        "machine.cpus": SERVER_CPU,
        "net.inet.ip.forwarding": "1",
        "if.mem0.inet": "10.97.0.1/24",
        "if.mem0.source": "from=10.97.0.2 to=10.97.1.2 flows=64",
        "if.mem1.inet": "10.97.1.1/24",
        **row.tunables,
    })  # fmt: skip
    try:
        before = (_packets(bench, counter), sum(cputimes(child.pid).values()))
        time.sleep(bench.seconds)
        after = (_packets(bench, counter), sum(cputimes(child.pid).values()))
        packets, cpu = (now - then for now, then in zip(after, before, strict=True))
        assert cpu > 0, "the stack had no CPU meanwhile"
        return Sample(packets / cpu)
    finally:
        bench.topology.stop(child)


def _packets(bench: Bench, counter: str) -> int:
    # The source leaves the control socket little of its CPU.
    for _ in range(50):
        output = bench.topology.ask("sysctl", counter, check=False)
        if output:
            return int(output.split()[1])
    raise AssertionError("the stack does not answer")


def cputimes(pid: int) -> dict[int, float]:
    """CPU seconds of each thread of a process."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return {int(thread.name): int((thread / "schedstat").read_text("ascii").split()[0]) / 1e9 for thread in threads}


def between_hosts(bench: Bench, row: Row, side: str) -> Sample:
    """Small packets from left to right through a router, for each busy second of its CPU."""
    left = bench.topology.host("left")
    if side == "linux":
        bench.forwarder()
        with _arrivals(bench, left, "10.96.0.2", "plain1") as count:
            return count(row)
    tunables = {**row.driver.address(1), "net.inet.ip.forwarding": "1", "route.10.50.0.0/16": "10.99.1.1",
                "machine.cpus": SERVER_CPU, **row.tunables}  # fmt: skip
    with pinned(SERVER_CPU):
        router = bench.topology.boot(tunables, driver=row.driver)
    try:
        with _arrivals(bench, left, "10.99.0.2", "data0") as count:
            return count(row)
    finally:
        bench.topology.stop(router)


@contextlib.contextmanager
def _arrivals(bench: Bench, left: str, router: str, device: str) -> Iterator[Callable[[Row], Sample]]:
    """Route the load by a router; the result counts packets on right's device, which routes no further."""
    right = bench.topology.host("right")
    run("ip", "-n", left, "route", "add", "10.50.0.0/16", "via", router)

    def arrived() -> int:
        links = json.loads(run("ip", "-n", right, "-s", "-j", "link", "show", device))
        return int(links[0]["stats64"]["rx"]["packets"])

    def count(row: Row) -> Sample:
        load = [f"{bench.bin}/netblast", *row.load, "-t"]
        with pinned(CLIENT_CPU):
            bench.topology.on("left", *load, "0.2", BEYOND, DISCARD)  # link addresses are resolved now
            before = (arrived(), busy(SERVER_CPU))
            bench.topology.on("left", *load, str(bench.seconds), BEYOND, DISCARD)
        packets, cpu = arrived() - before[0], busy(SERVER_CPU) - before[1]
        assert packets > 0, "nothing arrived"
        return Sample(packets / cpu, cpu / packets)

    try:
        yield count
    finally:
        run("ip", "-n", left, "route", "delete", "10.50.0.0/16")
