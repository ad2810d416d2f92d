# SPDX-License-Identifier: BSD-2-Clause
"""netblast, which comes with the stack: small datagrams as fast as one CPU sends them, and how many netreceive got; or
the highest rates at which hardly any are lost.
"""

import re

from perfweb.runs.catalogue import Measure
from runners.tools import SERVER_PORTS, ToolError, Value, positive

_RATE = r"^{what}: \d+ seconds: [\d.]+ rate: (?P<rate>\S+) datagrams/s"
_FOUND = re.compile(r"^(?P<name>ndr|pdr): (?P<rate>\S+) datagrams/s", re.ASCII | re.MULTILINE)
_SENT, _RECEIVED = (re.compile(_RATE.format(what=what), re.ASCII | re.MULTILINE) for what in ("sent", "received"))


def command(measure: Measure, address: str, seconds: int, prefix: str) -> list[str]:
    port = str(SERVER_PORTS["netreceive"])
    searching = ["-f"] if measure.name == "udp.ndr" else []
    return [f"{prefix}/bin/netblast", *searching, "-c", port, "-t", str(seconds), address, port]


def parse(output: str) -> list[Value]:
    """Datagrams per second that arrived, and that were sent; or what a search has found."""
    if found := {line["name"]: line["rate"] for line in _FOUND.finditer(output)}:
        return [Value(name, positive(rate, name), "packets/s", "higher") for name, rate in found.items()]
    sent, received = (pattern.search(output) for pattern in (_SENT, _RECEIVED))
    if sent is None or received is None:
        raise ToolError("netblast did not print what was sent and what was received")
    return [
        Value("packets", positive(received["rate"], "rate of what was received"), "packets/s", "higher"),
        Value("sent", positive(sent["rate"], "rate of what was sent"), "packets/s", "higher"),
    ]
