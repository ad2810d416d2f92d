# SPDX-License-Identifier: BSD-2-Clause
"""tcpconnect, which is part of the stack: opens and closes TCP connections as fast as it can."""

import re

from perfweb.measuring.tools.base import SERVER_PORTS, ToolError, Value, positive
from perfweb.runs.catalogue import Measure

_RATE = re.compile(r"^connections: \d+ seconds: [\d.]+ rate: (?P<rate>\S+) connections/s$", re.ASCII | re.MULTILINE)


def command(measure: Measure, address: str, seconds: int, prefix: str) -> list[str]:  # noqa: ARG001
    return [f"{prefix}/bin/tcpconnect", "-c", address, "-p", str(SERVER_PORTS["tcpconnect"]), "-t", str(seconds)]


def parse(output: str) -> list[Value]:
    """Connections per second, from the line `connections: N seconds: S rate: R connections/s`."""
    found = _RATE.search(output)
    if found is None:
        raise ToolError("tcpconnect printed no rate")
    return [Value("connections", positive(found["rate"], "rate"), "connections/s", "higher")]
