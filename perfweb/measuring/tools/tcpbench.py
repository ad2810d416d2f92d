# SPDX-License-Identifier: BSD-2-Clause
"""tcpbench, OpenBSD's: its client reports for each interval what each connection has written."""

import re

from perfweb.measuring.tools.base import SERVER_PORTS, Interim, ToolError, Value, family_option, positive
from perfweb.runs.catalogue import Measure

INTERVAL_MS = 100
# Milliseconds since the beginning, bytes of the interval, Mbit/s and the share of one connection.
_LINE = re.compile(r"^ *(?P<elapsed>\d{1,12}) +(?P<bytes>\d{1,18}) +[\d.]+ +[\d.]+% *$", re.ASCII | re.MULTILINE)

# The start of the line after those of an interval.
_END = "Conn:"


def command(measure: Measure, address: str, seconds: int, prefix: str) -> list[str]:  # noqa: ARG001
    """A measure is named after the number of connections: tcpbench.10."""
    times = ["-t", str(seconds), "-r", str(INTERVAL_MS)]
    connections = measure.name.rpartition(".")[2]
    return ["tcpbench", family_option(address), "-p", str(SERVER_PORTS["tcpbench"]), *times, "-n", connections, address]


def parse(output: str) -> list[Value]:
    """The bits/s written by all connections together, up to the end of the last interval."""
    intervals = _intervals(output)
    if not intervals:
        raise ToolError("tcpbench printed no interval: it did not connect, or ended at once")
    elapsed = positive(max(elapsed for elapsed, _ in intervals), "time of tcpbench's last interval")
    written = positive(sum(count for _, count in intervals), "number of bytes that tcpbench wrote")
    return [Value("throughput", 8000 * written / elapsed, "bits/s", "higher")]


def interim(output: str) -> Interim:
    """The bytes written by all connections together in each interval."""
    points: Interim = []
    began = 0
    for elapsed, written in _intervals(output):
        if elapsed > began:
            points.append((elapsed / 1000, round(8000 * written / (elapsed - began))))
        began = elapsed
    return points


def _intervals(output: str) -> list[tuple[int, int]]:
    """The end of each interval in milliseconds, and the bytes that all connections have written in it."""
    parts = ([*_LINE.finditer(part)] for part in output.split(_END))
    return [
        (max(int(line["elapsed"]) for line in lines), sum(int(line["bytes"]) for line in lines))
        for lines in parts
        if lines
    ]
