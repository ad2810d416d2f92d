# SPDX-License-Identifier: BSD-2-Clause
"""tcpbench, OpenBSD's: its client reports for each interval what each connection has written."""

import re

from perfweb.measuring.tools.base import SERVER_PORTS, Interim, ToolError, Value, family_option, positive
from perfweb.runs.catalogue import Measure

INTERVAL_MS = 100
# Milliseconds since the beginning, bytes of the interval, Mbit/s and the share of one connection, which is no number in
# an interval without a byte.
_LINE = re.compile(r" *(?P<elapsed>\d{1,12}) +(?P<bytes>\d{1,18}) +[\d.]+ +(?:[\d.]+|-?nan)% *", re.ASCII)
_ROW = re.compile(r" *[-+]?\d")

# The start of the line after those of an interval.
_END = "Conn:"


def command(measure: Measure, address: str, seconds: int, prefix: str) -> list[str]:  # noqa: ARG001
    """A measure is named after the number of connections: tcpbench.10."""
    times = ["-t", str(seconds), "-r", str(INTERVAL_MS)]
    connections = measure.name.rpartition(".")[2]
    return ["tcpbench", family_option(address), "-p", str(SERVER_PORTS["tcpbench"]), *times, "-n", connections, address]


def parse(output: str) -> list[Value]:
    """The bits/s written by all connections together, up to the end of the last interval.

    Raises ToolError for a row that is not tcpbench's, and for a time that goes back, as in the output of two calls.
    """
    for row in output.splitlines():
        if _ROW.match(row) and not _LINE.fullmatch(row):
            raise ToolError(f"tcpbench prints no such line: {row.strip()[:60]!r}")
    intervals = _intervals(output)
    if not intervals:
        raise ToolError("tcpbench printed no interval: it did not connect, or ended at once")
    times = [elapsed for elapsed, _ in intervals]
    if times != sorted(times):
        raise ToolError("the time of tcpbench's intervals goes back: this is the output of several calls")
    elapsed = positive(times[-1], "time of tcpbench's last interval")
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
    parts = ([found for row in part.splitlines() if (found := _LINE.fullmatch(row))] for part in output.split(_END))
    return [
        (max(int(line["elapsed"]) for line in lines), sum(int(line["bytes"]) for line in lines))
        for lines in parts
        if lines
    ]
