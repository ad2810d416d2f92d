# SPDX-License-Identifier: BSD-2-Clause
"""Every test there is, named by what it measures and never by a command line.

A full name such as `tcp.rr/host-router-host/ipv4` is measure/topology/family.  Results are compared by
name for years, so a name is never given another meaning.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Measure:
    """What is measured, by which tool, against which server program, and the metric that comparisons are about.

    The tool runs on `host`: on left, as a client of the server, or on dut, where it asks the stack itself and neither
    topology nor family makes a difference.
    """

    name: str
    title: str
    tool: str
    server: str
    metric: str
    host: str = "left"


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
        """The server program of a boot.  Only netserver serves both families alike; IPv6 has the others to itself."""
        shared = self.family == "ipv4" or self.measure.server == "netserver"
        return self.measure.server if shared else f"{self.measure.server}-6"

    @property
    def title(self) -> str:
        return f"{self.measure.title}, {self.topology}, {self.family}"


TOPOLOGIES = ("host-host", "host-router-host")
FAMILIES = ("ipv4", "ipv6")

MEASURES = (
    Measure("tcp.rr", "TCP request/response", "netperf", "netserver", "transactions"),
    Measure("udp.rr", "UDP request/response", "netperf", "netserver", "transactions"),
    Measure("tcp.stream", "TCP bulk transfer", "netperf", "netserver", "throughput"),
    Measure("udp.stream", "UDP bulk transfer", "netperf", "netserver", "throughput"),
    Measure("tcp.crr", "TCP connect/request/response", "netperf", "netserver", "transactions"),
    Measure("iperf3.1", "TCP bulk transfer, 1 stream", "iperf3", "iperf3", "throughput"),
    Measure("iperf3.10", "TCP bulk transfer, 10 streams", "iperf3", "iperf3", "throughput"),
    Measure("tcpconnect", "TCP connections per second", "tcpconnect", "tcpconnect", "connections"),
    Measure("receive", "CPU time of a received packet", "stackctl", "none", "cpu", host="dut"),
)

_TESTS = (Test(measure, topology, family) for topology in TOPOLOGIES for measure in MEASURES for family in FAMILIES)
TESTS = {
    test.name: test
    for test in _TESTS
    if test.measure.host == "left" or (test.topology, test.family) == (TOPOLOGIES[0], FAMILIES[0])
}
