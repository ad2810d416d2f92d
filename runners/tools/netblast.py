# SPDX-License-Identifier: BSD-2-Clause
"""netblast, which comes with the stack: small datagrams as fast as one CPU sends them, and how many netreceive got."""

import re

from perfweb.runs.catalogue import Measure
from runners.tools import SERVER_PORTS, ToolError, Value, positive

_RATE = r"^{what}: \d+ seconds: [\d.]+ rate: (?P<rate>\S+) datagrams/s"
_SENT, _RECEIVED = (re.compile(_RATE.format(what=what), re.ASCII | re.MULTILINE) for what in ("sent", "received"))


def command(measure: Measure, address: str, seconds: int, prefix: str) -> list[str]:  # noqa: ARG001
    port = str(SERVER_PORTS["netreceive"])
    return [f"{prefix}/bin/netblast", "-c", port, "-t", str(seconds), address, port]


def parse(output: str) -> list[Value]:
    """Datagrams per second that arrived, and that were sent."""
    sent, received = (pattern.search(output) for pattern in (_SENT, _RECEIVED))
    if sent is None or received is None:
        raise ToolError("netblast did not print what was sent and what was received")
    return [
        Value("packets", positive(received["rate"], "rate of what was received"), "packets/s", "higher"),
        Value("sent", positive(sent["rate"], "rate of what was sent"), "packets/s", "higher"),
    ]
