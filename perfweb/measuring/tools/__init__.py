# SPDX-License-Identifier: BSD-2-Clause
"""The measuring tools: how each is called and how its output is read.

A tool module has two functions.  `command(measure, address, seconds, prefix)` gives the argument list of one sample
against the server at `address`; `prefix` is where the stack is installed, for tools that come with it.  `parse(output)`
gives the values in what the tool printed, or raises ToolError: a missing, zero or nonsensical number is never a sample.
A tool whose server takes one client at a time has in `BUSY` the text with which others are sent away.  One that tells
throughput while it runs has `interim(output)`, which gives what interim() below does and raises nothing.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType

from perfweb.inputlimits import TOOL_NUMBER_CHARACTERS
from perfweb.runs.catalogue import Measure
from playbooks.module_utils.tunnels import overhead

# Where each server program listens.
SERVER_PORTS = {
    "netserver": 12865, "iperf3": 5201, "tcpconnect": 5301, "unixbench": 5302, "netreceive": 5303, "tcpload": 5304,
    "tcpbench": 12345,
}  # fmt: skip

# Tools that come with the stack, and their servers.
FROM_BUILD = frozenset({"netblast", "tcpconnect", "tcpload", "unixbench"})


Interim = list[tuple[float, float]]
"""Ends of intervals in seconds since the beginning of the sample, with the bits/s of each interval."""


class ToolError(Exception):
    """The tool did not deliver; the message says what is wrong with its output."""


@dataclass(frozen=True)
class Value:
    """One number: `direction` is "higher" or "lower", whichever is better."""

    metric: str
    value: float
    unit: str
    direction: str


def number(text: object, what: str) -> float:
    """`text` as a finite number; raises ToolError that names `what`."""
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise ToolError(f"{what} is not a number")
    if isinstance(text, str) and len(text) > TOOL_NUMBER_CHARACTERS:
        raise ToolError(f"{what} has {len(text)} characters; a number has at most {TOOL_NUMBER_CHARACTERS}")
    try:
        value = float(text)
    except (ValueError, OverflowError):
        raise ToolError(f"{what} is not a number: {str(text)[:40]!r}") from None
    if not math.isfinite(value):
        raise ToolError(f"{what} is {value:g}, which cannot be measured")
    return value


def positive(text: object, what: str) -> float:
    """`text` as a finite number above zero; raises ToolError that names `what`."""
    value = number(text, what)
    if value <= 0:
        raise ToolError(f"{what} is {value:g}, which cannot be measured")
    return value


def family_option(address: str) -> str:
    """What netperf and iperf3 want to be told of an address."""
    return "-6" if ":" in address else "-4"


def udp_payload(address: str) -> str:
    """The bytes of the largest UDP datagram to an address that needs no fragment on Ethernet, nor in its tunnel."""
    ip = 40 if ":" in address else 20
    return str(1500 - overhead(address) - ip - 8)


def command(measure: Measure, address: str, seconds: int, prefix: str) -> list[str]:
    """The argument list of one sample of `seconds` seconds against the server at `address`."""
    build: Callable[[Measure, str, int, str], list[str]] = _module(measure.tool).command
    return build(measure, address, seconds, prefix)


def busy(measure: Measure) -> str:
    """What the tool prints when its server wants it to come again; empty for one whose server always has time."""
    text: str = getattr(_module(measure.tool), "BUSY", "")
    return text


def parse(measure: Measure, output: str) -> list[Value]:
    """The values in the tool's standard output, the measure's own metric among them; ToolError if not."""
    read: Callable[[str], list[Value]] = _module(measure.tool).parse
    values = read(output)
    for value in values:
        positive(value.value, value.metric)  # a product of finite numbers may be infinite
    if all(value.metric != measure.metric for value in values):
        raise ToolError(f"{measure.tool} printed no {measure.metric}")
    return values


def interim(measure: Measure, output: str) -> Interim:
    """The throughput of a sample as its tool told it meanwhile; empty where it told fewer than two numbers."""
    read: Callable[[str], Interim] | None = getattr(_module(measure.tool), "interim", None)
    told = read(output) if read else []
    return told if len(told) > 1 else []


def _module(tool: str) -> ModuleType:
    return import_module(f"{__name__}.{tool}")
