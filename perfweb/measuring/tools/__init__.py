# SPDX-License-Identifier: BSD-2-Clause
"""The registry of measuring tools: how each is called and how its output is read (`base.Tool`)."""

from collections.abc import Mapping, Sequence

from perfweb.measuring.tools import (
    counted,
    cpucheck,
    iperf3,
    netblast,
    netperf,
    simstack,
    stackctl,
    tcpbench,
    tcpconnect,
    tcpload,
    unixbench,
)
from perfweb.measuring.tools.base import SERVER_PORTS, Interim, Tool, ToolError, Value, positive, stalled
from perfweb.runs.catalogue import Measure

__all__ = [
    "SERVER_PORTS", "TOOLS", "Interim", "ToolError", "Value", "busy", "command", "interim", "parse", "positive",
    "stalled",
]  # fmt: skip

TOOLS: Mapping[str, Tool] = {
    "counted": Tool(counted.command, counted.parse, from_build=True),
    "cpucheck": Tool(cpucheck.command, cpucheck.parse),
    "iperf3": Tool(iperf3.command, iperf3.parse, iperf3.interim, busy=iperf3.BUSY),
    "netblast": Tool(netblast.command, netblast.parse, from_build=True),
    "netperf": Tool(netperf.command, netperf.parse, netperf.interim),
    "simstack": Tool(simstack.command, simstack.parse),
    "stackctl": Tool(stackctl.command, stackctl.parse),
    "tcpbench": Tool(tcpbench.command, tcpbench.parse, tcpbench.interim),
    "tcpconnect": Tool(tcpconnect.command, tcpconnect.parse, from_build=True),
    "tcpload": Tool(tcpload.command, tcpload.parse, from_build=True),
    "unixbench": Tool(unixbench.command, unixbench.parse, from_build=True),
}
"""The tools by their names in the catalogue of measures; a new tool is a module and a line here."""


def command(measure: Measure, address: str, seconds: int, prefix: str) -> list[str]:
    """Return the command of one sample of `seconds` seconds against the server at `address`."""
    return TOOLS[measure.tool].command(measure, address, seconds, prefix)


def busy(measure: Measure) -> Sequence[str]:
    """Return the texts in the output of the tool when its busy server refuses it; none for servers that never do."""
    return TOOLS[measure.tool].busy


def parse(measure: Measure, output: str) -> list[Value]:
    """Return the values in the tool's standard output, including the measure's own metric. Raises ToolError."""
    values = TOOLS[measure.tool].parse(output)
    for value in values:
        positive(value.value, value.metric)  # a product of finite numbers may be infinite
    if all(value.metric != measure.metric for value in values):
        raise ToolError(f"{measure.tool} printed no {measure.metric}")
    return values


def interim(measure: Measure, output: str) -> Interim:
    """Return the throughput within a sample as its tool reported it; empty with fewer than two numbers."""
    reported = TOOLS[measure.tool].interim(output)
    return reported if len(reported) > 1 else []
