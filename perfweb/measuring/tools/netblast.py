# SPDX-License-Identifier: BSD-2-Clause
"""netblast, which is part of the stack: small datagrams as fast as one CPU sends them, and how many netreceive got; or
the highest rates at which hardly any are lost; or round-trip times at shares of the highest rate without loss.
"""

import re

from perfweb.measuring.tools.base import SERVER_PORTS, ToolError, Value, counted_rate, only, positive
from perfweb.runs.catalogue import LOADS, Measure

_FOUND = re.compile(r"^(?P<name>ndr|pdr): (?P<rate>\S+) datagrams/s", re.ASCII | re.MULTILINE)
_LOAD = re.compile(r"^load: (?P<percent>\d{1,3}) % (?P<times>.*) us$", re.ASCII | re.MULTILINE)
_TIME = re.compile(r"\b(?P<share>p50|p90|p99|max): (?P<time>\S+)")
_MODES = {"udp.ndr": ["-f"], "udp.loaded": ["-l"]}
_RATE = r"(?P<count>\d{1,18}) seconds: (?P<seconds>\S+) rate: (?P<rate>\S+) datagrams/s"
_SENT = re.compile(rf"^sent: {_RATE}", re.ASCII | re.MULTILINE)
_RECEIVED = re.compile(rf"^received: {_RATE}", re.ASCII | re.MULTILINE)


def command(measure: Measure, address: str, seconds: int, prefix: str) -> list[str]:
    port = str(SERVER_PORTS["netreceive"])
    return [f"{prefix}/bin/netblast", *_MODES.get(measure.name, []), "-c", port, "-t", str(seconds), address, port]


def parse(output: str) -> list[Value]:
    """Datagrams per second, received and sent; or the result of a search, and the latencies below it."""
    lines = list(_FOUND.finditer(output))
    if found := {line["name"]: line["rate"] for line in lines}:
        if len(found) < len(lines):
            raise ToolError("netblast printed a rate twice: this is the output of several calls")
        rates = [Value(name, positive(rate, name), "packets/s", "higher") for name, rate in found.items()]
        return [*rates, *_latencies(output)]
    sent = only(_SENT, output, "netblast", "rate of what was sent")
    received = only(_RECEIVED, output, "netblast", "rate of what was received")
    if int(received["count"]) > int(sent["count"]):
        counts = f"{received['count']} datagrams were received, but {sent['count']} were sent"
        raise ToolError(f"netblast: {counts}, which cannot be")
    return [
        Value("packets", counted_rate(received, "netblast", "datagrams"), "packets/s", "higher"),
        Value("sent", counted_rate(sent, "netblast", "datagrams"), "packets/s", "higher"),
    ]


def _latencies(output: str) -> list[Value]:
    """Percentiles of the round trips at each load; none if no load was offered."""
    loads = {int(line["percent"]): line["times"] for line in _LOAD.finditer(output)}
    if loads and tuple(loads) != LOADS:
        reported, wanted = (", ".join(map(str, some)) for some in (loads, LOADS))
        raise ToolError(f"netblast reported loads of {reported} %, not of {wanted} %")
    return [
        Value(name, positive(found["time"], name), "us", "lower")
        for percent, line in loads.items()
        for found in _TIME.finditer(line)
        for name in [f"latency.{found['share']}.{percent}"]
    ]
