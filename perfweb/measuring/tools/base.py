# SPDX-License-Identifier: BSD-2-Clause
"""Shared parts of tool modules: values, errors, numbers, ports and options."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from perfweb.inputlimits import TOOL_NUMBER_CHARACTERS
from perfweb.runs.catalogue import Measure
from playbooks.module_utils.tunnels import overhead

# The port of each server program.
SERVER_PORTS = {
    "netserver": 12865, "iperf3": 5201, "tcpconnect": 5301, "unixbench": 5302, "netreceive": 5303, "tcpload": 5304,
    "tcpbench": 12345,
}  # fmt: skip

_NUMBER = re.compile(r"[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?|nan|inf|infinity)", re.ASCII | re.IGNORECASE)
_COMMA = re.compile(r"[+-]?\d+,\d+", re.ASCII)

_COUNTED_ROUNDING = 0.01
"""Max difference of a rate from its count and seconds, as a share beyond one unit; seconds have three decimals."""

Interim = list[tuple[float, float]]
"""Ends of intervals in seconds since the beginning of the sample, with the bits/s of each interval."""


class ToolError(Exception):
    """The tool has no valid result; the message has the problem of its output."""


@dataclass(frozen=True)
class Value:
    """One number: `direction` is the better one, "higher" or "lower"."""

    metric: str
    value: float
    unit: str
    direction: str


@dataclass(frozen=True)
class Tool:
    """The command of a tool, and the parser of its output.

    `command(measure, address, seconds, prefix)` gives the argument list of one sample against the server at `address`;
    `prefix` is the installed stack, for tools that are part of it (`from_build`). `parse(output)` gives the values in
    the tool's output, or raises ToolError: a missing, zero or nonsensical number is never a sample. `interim(output)`
    gives the throughput that some tools report while they run, and raises nothing. `busy` are the texts in the output
    of a client that a server of one client at a time refuses; none for all other servers.
    """

    command: Callable[[Measure, str, int, str], list[str]]
    parse: Callable[[str], list[Value]]
    interim: Callable[[str], Interim] = lambda _: []
    busy: Sequence[str] = ()
    from_build: bool = False


BUSY_MIN = 0.5
"""Min share of a request/response sample that its transactions must fill."""


def stalled(values: Sequence[Value]) -> str:
    """Return why a request/response sample is void, or an empty text: its client waited most of the time.

    The rate multiplied by the mean latency is the mean number of transactions in flight (Little 1961, "A proof for the
    queuing formula L = λW"). It is 1 for a client that sends the next request when the response arrives, and more for
    several clients. netperf 2.7 without -e sends nothing more after the first lost datagram: its latency is then that
    of a network without loss, and its rate is too low.
    """
    known = {value.metric: value for value in values}
    rate, latency = known.get("transactions"), known.get("latency.mean")
    if rate is None or latency is None or latency.unit != "us":
        return ""
    busy = rate.value * latency.value / 1e6
    if busy >= BUSY_MIN:
        return ""
    return (
        f"stall: {rate.value:g} transactions/s of {latency.value:g} us fill {100 * busy:.1f} % of the time "
        f"({100 * BUSY_MIN:g} % needed): the client waited for a datagram or answer that was lost"
    )


def number(text: object, what: str) -> float:
    """Parse `text` as a finite number in plain digits; raises ToolError that names `what`."""
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise ToolError(f"{what} is not a number")
    if isinstance(text, str) and len(text) > TOOL_NUMBER_CHARACTERS:
        raise ToolError(f"{what} has {len(text)} characters; a number has at most {TOOL_NUMBER_CHARACTERS}")
    if isinstance(text, str) and not _NUMBER.fullmatch(text.strip()):
        hint = " (write a decimal point)" if _COMMA.fullmatch(text.strip()) else ""
        raise ToolError(f"{what} is not a number: {text[:40]!r}{hint}")
    try:
        value = float(text)
    except OverflowError:
        raise ToolError(f"{what} is not a number: {str(text)[:40]!r}") from None
    if not math.isfinite(value):
        raise ToolError(f"{what} is {value:g}, which cannot be measured")
    return value


def positive(text: object, what: str) -> float:
    """Parse `text` as a finite number above zero; raises ToolError that names `what`."""
    value = number(text, what)
    if value <= 0:
        raise ToolError(f"{what} is {value:g}, which cannot be measured")
    return value


def json_number(found: object, what: str) -> float:
    """Return a number of a JSON document. Raises ToolError, also for a text: no tool prints numbers so."""
    if isinstance(found, str):
        raise ToolError(f"{what} is not a number, but the text {found[:40]!r}")
    return number(found, what)


def json_positive(found: object, what: str) -> float:
    """Return a number of a JSON document above zero; raises ToolError that names `what`."""
    return positive(json_number(found, what), what)


def only(pattern: re.Pattern[str], output: str, tool: str, what: str) -> re.Match[str]:
    """Return the only match of a pattern. Raises ToolError for none, and for several: which one counts is unknown."""
    found = list(pattern.finditer(output))
    if not found:
        raise ToolError(f"{tool} printed no {what}")
    if len(found) > 1:
        raise ToolError(f"{tool} printed {what} {len(found)} times: this is the output of several calls")
    return found[0]


def counted_rate(found: re.Match[str], tool: str, what: str) -> float:
    """Return the group `rate` of a line of a tool of this project. Raises ToolError if it is not that of the groups
    `count` and `seconds`.
    """
    count = positive(found["count"], f"number of {what}")
    seconds, rate = (positive(found[name], name) for name in ("seconds", "rate"))
    if abs(rate - count / seconds) > _COUNTED_ROUNDING * rate + 1:
        raise ToolError(
            f"{tool}'s rate is {rate:g} {what}/s, but {count:g} {what} in {seconds:g} s are others, which cannot be"
        )
    return rate


def family_option(address: str) -> str:
    """Return the options of netperf and iperf3 for an address."""
    return "-6" if ":" in address else "-4"


def udp_payload(address: str) -> str:
    """Return the bytes of the largest UDP datagram to an address that is not fragmented on Ethernet, nor in its
    tunnel.
    """
    ip = 40 if ":" in address else 20
    return str(1500 - overhead(address) - ip - 8)
