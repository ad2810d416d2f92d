# SPDX-License-Identifier: BSD-2-Clause
"""netblast, which comes with the stack: small datagrams as fast as one CPU sends them, and how many netreceive got; or
the highest rates at which hardly any are lost, and how long round trips take at shares of these.
"""

import re

from perfweb.runs.catalogue import LOADS, Measure
from runners.tools import SERVER_PORTS, ToolError, Value, positive

_RATE = r"^{what}: \d+ seconds: [\d.]+ rate: (?P<rate>\S+) datagrams/s"
_FOUND = re.compile(r"^(?P<name>ndr|pdr): (?P<rate>\S+) datagrams/s", re.ASCII | re.MULTILINE)
_SENT, _RECEIVED = (re.compile(_RATE.format(what=what), re.ASCII | re.MULTILINE) for what in ("sent", "received"))
_LOAD = re.compile(
    r"^load: (?P<load>\d+) % rate: (?P<rate>\S+) datagrams/s lost: \d+ of \d+ behind: \d+ "
    r"probes: (?P<back>\d{1,12}) of (?P<probes>\d{1,12}) "
    r"p50: (?P<p50>\S+) p90: (?P<p90>\S+) p99: (?P<p99>\S+) max: (?P<max>\S+) us$",
    re.ASCII | re.MULTILINE,
)
_OPTIONS = {"udp.ndr": ["-f"], "udp.loaded": ["-l"]}


def command(measure: Measure, address: str, seconds: int, prefix: str) -> list[str]:
    port = str(SERVER_PORTS["netreceive"])
    options = _OPTIONS.get(measure.name, [])
    return [f"{prefix}/bin/netblast", *options, "-c", port, "-t", str(seconds), address, port]


def parse(output: str) -> list[Value]:
    """Datagrams per second that arrived, and that were sent; or what a search has found, with the latencies in
    microseconds at shares of that where it went on to these.
    """
    if found := {line["name"]: line["rate"] for line in _FOUND.finditer(output)}:
        rates = [Value(name, positive(rate, name), "packets/s", "higher") for name, rate in found.items()]
        return rates if "pdr" in found else [*rates, *_loaded(output)]
    sent, received = (pattern.search(output) for pattern in (_SENT, _RECEIVED))
    if sent is None or received is None:
        raise ToolError("netblast did not print what was sent and what was received")
    return [
        Value("packets", positive(received["rate"], "rate of what was received"), "packets/s", "higher"),
        Value("sent", positive(sent["rate"], "rate of what was sent"), "packets/s", "higher"),
    ]


def _loaded(output: str) -> list[Value]:
    """What was told of each load."""
    told = {line["load"]: line for line in _LOAD.finditer(output)}
    if missing := [load for load in LOADS if load not in told]:
        raise ToolError(f"netblast did not print how long probes took at {missing[0]} %")
    return [value for load in LOADS for value in _at_load(load, told[load])]


def _at_load(load: str, told: re.Match[str]) -> list[Value]:
    """A percentile that too many lost probes made infinite is no number: that one is left out."""
    probes, back = (positive(told[name], f"number of probes at {load} %") for name in ("probes", "back"))
    times = {name: told[name] for name in ("p50", "p90", "p99", "max")}
    return [
        Value(f"offered.{load}", positive(told["rate"], f"rate at {load} %"), "packets/s", "higher"),
        Value(f"delivered.{load}", 100 * (back / probes), "%", "higher"),
        *(
            Value(f"latency.{name}.{load}", positive(time, f"{name} at {load} %"), "us", "lower")
            for name, time in times.items()
            if time != "inf"
        ),
    ]
