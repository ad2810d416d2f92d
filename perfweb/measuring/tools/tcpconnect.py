# SPDX-License-Identifier: BSD-2-Clause
"""tcpconnect, which is part of the stack: opens and closes TCP connections as fast as it can."""

import re

from perfweb.measuring.tools.base import SERVER_PORTS, ToolError, Value, only, positive
from perfweb.runs.catalogue import Measure

_RATE = re.compile(
    r"^connections: (?P<count>\d{1,18}) seconds: (?P<seconds>\S+) rate: (?P<rate>\S+) connections/s$",
    re.ASCII | re.MULTILINE,
)
_ROUNDING = 0.01
"""Max difference of the rate from connections and seconds, as a share; they have three decimals and one."""


def command(measure: Measure, address: str, seconds: int, prefix: str) -> list[str]:  # noqa: ARG001
    return [f"{prefix}/bin/tcpconnect", "-c", address, "-p", str(SERVER_PORTS["tcpconnect"]), "-t", str(seconds)]


def parse(output: str) -> list[Value]:
    """Connections per second, from the line `connections: N seconds: S rate: R connections/s`."""
    found = only(_RATE, output, "tcpconnect", "rate")
    count = positive(found["count"], "number of connections")
    seconds, rate = (positive(found[name], name) for name in ("seconds", "rate"))
    if abs(rate - count / seconds) > _ROUNDING * rate + 0.1:
        raise ToolError(
            f"tcpconnect's rate is {rate:g} connections/s, but {count:g} connections in {seconds:g} s are others, "
            "which cannot be"
        )
    return [Value("connections", rate, "connections/s", "higher")]
