# SPDX-License-Identifier: BSD-2-Clause
"""tcpconnect, which is part of the stack: opens and closes TCP connections as fast as it can."""

import re

from perfweb.measuring.tools.base import SERVER_PORTS, Value, counted_rate, only
from perfweb.runs.catalogue import Measure

_RATE = re.compile(
    r"^connections: (?P<count>\d{1,18}) seconds: (?P<seconds>\S+) rate: (?P<rate>\S+) connections/s$",
    re.ASCII | re.MULTILINE,
)


def command(measure: Measure, address: str, seconds: int, prefix: str) -> list[str]:  # noqa: ARG001
    return [f"{prefix}/bin/tcpconnect", "-c", address, "-p", str(SERVER_PORTS["tcpconnect"]), "-t", str(seconds)]


def parse(output: str) -> list[Value]:
    """Connections per second, from the line `connections: N seconds: S rate: R connections/s`."""
    found = only(_RATE, output, "tcpconnect", "rate")
    return [Value("connections", counted_rate(found, "tcpconnect", "connections"), "connections/s", "higher")]
