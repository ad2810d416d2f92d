# SPDX-License-Identifier: BSD-2-Clause
"""tcpload, which is part of the stack: its client makes the server connect to itself, by an in-memory interface."""

import re

from perfweb.measuring.tools.base import SERVER_PORTS, Value, only, positive
from perfweb.runs.catalogue import Measure

_RATE = re.compile(r"^(?P<rate>\S+) bytes/s$", re.ASCII | re.MULTILINE)


def command(measure: Measure, address: str, seconds: int, prefix: str) -> list[str]:
    """A measure is named after the number of streams: mem.tcp.10."""
    streams = measure.name.rpartition(".")[2]
    words = ["-n", streams, "-t", str(seconds), address, str(SERVER_PORTS["tcpload"])]
    return [f"{prefix}/bin/tcpload", "ask", "in", *words]


def parse(output: str) -> list[Value]:
    """Bits per second of all streams together, from the line `N bytes/s`."""
    found = only(_RATE, output, "tcpload", "bytes/s")
    return [Value("throughput", 8 * positive(found["rate"], "rate"), "bits/s", "higher")]
