# SPDX-License-Identifier: BSD-2-Clause
"""All tests, named by what they measure and never by a command line.

A full name such as `tcp.rr/host-router-host/ipv4` is measure/topology/family.  Results are compared by
name for years, so a name is never given another meaning.
"""

from dataclasses import dataclass

from perfweb.counted.loads import LABEL, NAMES, UNITS
from perfweb.lab.origins import Origin, origin_of


@dataclass(frozen=True)
class Measure:
    """A measure: its tool, the server program, and the compared metric.

    The tool runs on `host`: on left, as a client of the server, or on dut, where it queries the stack itself. A server
    that is `alone` generates its own load when its client requests it, on all CPUs of dut for that purpose. A sample
    takes up to `times` times the seconds of a plan.
    """

    name: str
    title: str
    tool: str
    server: str
    metric: str
    host: str = "left"
    alone: bool = False
    times: int = 1

    @property
    def local(self) -> bool:
        """Whether it runs within dut only, so that neither topology nor family matters."""
        return self.alone or self.host == "dut"

    @property
    def origin(self) -> Origin:
        """How its results come about."""
        return origin_of(self.name)


@dataclass(frozen=True)
class Test:
    """A measure in a topology."""

    measure: Measure
    topology: str
    family: str

    @property
    def name(self) -> str:
        return f"{self.measure.name}/{self.topology}/{self.family}"

    @property
    def server(self) -> str:
        """The server program of a boot. Only netserver serves both families; others serve IPv6 in a separate
        process.
        """
        shared = self.family == "ipv4" or self.measure.server == "netserver"
        return self.measure.server if shared else f"{self.measure.server}-6"

    @property
    def boots(self) -> tuple[str, str]:
        """The topology and the server program of its boots. One guest runs all loads of a kernel that counts."""
        if self.measure.origin == Origin.COUNTED:
            return TOPOLOGIES[0], self.measure.server
        return self.topology, self.server

    @property
    def tunnel(self) -> str:
        """The kind of tunnel of its packets, empty for none."""
        return TUNNELS.get(self.topology, "")

    @property
    def outer_family(self) -> str:
        """The family of the packets on the data links."""
        return "ipv4" if self.tunnel else self.family

    @property
    def title(self) -> str:
        return f"{self.measure.title}, {self.topology}, {self.family}"


def _queries(clients: int) -> Measure:
    """Many clients of a database on the same host, whose cost is mainly that of the sockets."""
    title = f"Queries over UNIX-domain sockets, {clients} clients"
    return Measure(f"unix.mysql.{clients}", title, "unixbench", "unixbench", "transactions", alone=True)


def _many(count: int) -> str:
    return f"{count} stream{'s' if count > 1 else ''}"


def _streams(count: int, way: str = "") -> Measure:
    """TCP to the server or in another direction, each with that many streams."""
    name = f"iperf3.{count}.{way}" if way else f"iperf3.{count}"
    return Measure(name, f"TCP bulk transfer{WAYS[way]}, {_many(count)}", "iperf3", "iperf3", "throughput")


def _datagrams(payload: str, title: str, way: str = "") -> Measure:
    name = f"udp.packets.{payload}.{way}" if way else f"udp.packets.{payload}"
    return Measure(name, f"{title}{WAYS[way]}", "iperf3", "iperf3", "packets")


def _written(connections: int) -> Measure:
    title = f"TCP bulk transfer as tcpbench counts it, {_many(connections)}"
    return Measure(f"tcpbench.{connections}", title, "tcpbench", "tcpbench", "throughput")


def _in_memory(streams: int) -> Measure:
    """TCP within one host, over an in-memory interface without a device or packet loss."""
    title = f"TCP bulk transfer in memory, {_many(streams)}"
    return Measure(f"mem.tcp.{streams}", title, "tcpload", "tcpload", "throughput", alone=True)


def _simulated(workload: str, title: str, metric: str, cpus: int) -> Measure:
    """A workload of simstack, with a stream for each of that many virtual CPUs (docs/explanation/simulator.md)."""
    title = f"{title}, simulated, {cpus} CPU{'s' if cpus > 1 else ''}"
    return Measure(f"simulated.{workload}.{cpus}", title, "simstack", "none", metric, host="dut")


def _simulated_cost(workload: str, metric: str) -> Measure:
    """The cost of a unit of a workload on one virtual CPU, which is exact and without noise."""
    unit = {"tcp": "kilobyte of TCP", "unix": "message over UNIX-domain sockets", "forward": "forwarded packet"}[
        workload
    ]
    title = f"{SIMULATED_COSTS[metric]} of a {unit}, simulated, 1 CPU"
    return Measure(f"simulated.{workload}.1.{metric}", title, "simstack", "none", metric, host="dut")


def _counted(load: str) -> Measure:
    """A load of a kernel that counts (docs/explanation/counted.md)."""
    title = f"Instructions of a {load.partition('.')[0].upper()} {UNITS[load]}, counted"
    return Measure(f"{LABEL}{load}", title, "counted", "none", "instructions", host="dut")


TUNNELS = {"host-gif-host": "gif", "host-gre-host": "gre"}
TOPOLOGIES = ("host-host", "host-router-host", *TUNNELS)
FAMILIES = ("ipv4", "ipv6")
WAYS = {"": "", "reverse": " from the server", "bidirectional": " both ways at once"}
TUNNELLED = ("tcp.rr", "udp.rr", "tcp.stream", "tcp.maerts", "udp.stream", "udp.blast")
"""Measures that also exist in tunnels: round trips, and streams in either direction."""
SIMULATED_CPUS = (1, 2, 4, 8, 10, 16, 32, 64)
SIMULATED = (
    ("tcp", "TCP bulk transfer in memory", "throughput"),
    ("unix", "Messages over UNIX-domain sockets", "transactions"),
    ("forward", "Forwarding of small packets", "packets"),
)
LOADS = (25, 50, 75, 90)
"""Loads in percent of the highest rate without loss at which latencies are measured; those of
stack/tools/netblast.c.
"""
SIMULATED_COSTS = {"instructions": "Instructions", "blocks": "Basic blocks", "atomics": "Atomic operations"}

MEASURES = (
    Measure("tcp.rr", "TCP request/response", "netperf", "netserver", "transactions"),
    Measure("udp.rr", "UDP request/response", "netperf", "netserver", "transactions"),
    Measure("udp.rr.8000", "UDP request/response of 8000 bytes, in fragments", "netperf", "netserver", "transactions"),
    Measure("tcp.stream", "TCP bulk transfer", "netperf", "netserver", "throughput"),
    Measure("tcp.maerts", "TCP bulk transfer from the server", "netperf", "netserver", "throughput"),
    Measure("udp.stream", "UDP bulk transfer", "netperf", "netserver", "throughput"),
    Measure("tcp.crr", "TCP connect/request/response", "netperf", "netserver", "transactions"),
    Measure("tcp.cc", "TCP connect/close", "netperf", "netserver", "transactions"),
    Measure("tcp.bidirectional", "TCP bulk transfer by requests and responses", "netperf", "netserver", "throughput"),
    *(_streams(count, way) for way in ("", "reverse") for count in (1, 10, 100)),
    _streams(1, "bidirectional"),
    _streams(10, "bidirectional"),
    *(_datagrams("64", "UDP datagrams of 64 bytes", way) for way in ("", "reverse")),
    *(_datagrams("mtu", "UDP datagrams that fill a frame", way) for way in ("", "reverse")),
    _written(1),
    _written(10),
    Measure("tcpconnect", "TCP connections per second", "tcpconnect", "tcpconnect", "connections"),
    Measure("udp.blast", "Small datagrams, all that can be sent", "netblast", "netreceive", "packets"),
    # Trials last a plan's seconds, at most as many as in stack/tools/ratesearch.h.
    Measure("udp.ndr", "Small datagrams, the most without loss", "netblast", "netreceive", "ndr", times=20),
    # The compared percentile needs enough probes above it in a second, even if some are lost.
    Measure(
        "udp.loaded",
        "Latency of small datagrams under load",
        "netblast",
        "netreceive",
        "latency.p90.75",
        times=20 + len(LOADS),
    ),
    _queries(8),
    _queries(11),
    _queries(64),
    _in_memory(1),
    _in_memory(10),
    _in_memory(100),
    Measure("receive", "CPU time of a received packet", "stackctl", "none", "cpu", host="dut"),
    Measure("cpu.check", "Compiling and compressing on the host itself", "cpucheck", "none", "rounds", host="dut"),
    *(_simulated(*workload, cpus) for workload in SIMULATED for cpus in SIMULATED_CPUS),
    *(_simulated_cost(workload, metric) for workload, *_ in SIMULATED for metric in SIMULATED_COSTS),
)


_COUNTED_MEASURES = {load: _counted(load) for load in UNITS}
_COUNTED = tuple(
    Test(_COUNTED_MEASURES[load.removeprefix(LABEL)], place, family)
    for load, place, family in (name.split("/") for name in NAMES)
)
"""Loads of a kernel, each in the places that its guest has."""


def is_exact(test: str) -> bool:
    """Whether a test of the catalogue counts the cost of a simulated unit of work, which is the same each time."""
    return test in TESTS and origin_of(test) == Origin.SIMULATED and TESTS[test].measure.metric in SIMULATED_COSTS


def _makes_sense(test: Test) -> bool:
    if test.measure.local:
        return (test.topology, test.family) == (TOPOLOGIES[0], FAMILIES[0])
    return not test.tunnel or test.measure.name in TUNNELLED


_TESTS = (Test(measure, topology, family) for topology in TOPOLOGIES for measure in MEASURES for family in FAMILIES)
TESTS = {test.name: test for test in _TESTS if _makes_sense(test)} | {test.name: test for test in _COUNTED}
