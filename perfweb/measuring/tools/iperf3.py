# SPDX-License-Identifier: BSD-2-Clause
"""iperf3, reading the JSON that `-J` prints at the end."""

from collections.abc import Mapping
from typing import Any

from perfweb.jsontext import JsonError, Repeated, mark_repeated, read_json
from perfweb.measuring.tools.base import (
    SERVER_PORTS,
    Interim,
    ToolError,
    Value,
    family_option,
    number,
    positive,
    udp_payload,
)
from perfweb.runs.catalogue import Measure

# The server also refuses before it has noticed that the previous client ended. After that it closes its listening
# socket and opens a new one.
BUSY = ("the server is busy running a test", "unable to connect to server: Connection refused")

_WAYS = {"": [], "reverse": ["-R"], "bidirectional": ["--bidir"]}


def command(measure: Measure, address: str, seconds: int, prefix: str) -> list[str]:  # noqa: ARG001
    """A measure is named after the number of TCP streams, or the payload of datagrams, and the direction: iperf3.10,
    iperf3.1.bidirectional, udp.packets.64.reverse.
    """
    name, _, way = measure.name.removeprefix("iperf3.").removeprefix("udp.packets.").partition(".")
    port, family = str(SERVER_PORTS["iperf3"]), family_option(address)
    datagrams = ["-u", "-b", "0", "-l", udp_payload(address) if name == "mtu" else name]
    load = datagrams if measure.name.startswith("udp.") else ["-P", name]
    common = ["iperf3", family, "-J", "-c", address, "-p", port, "-t", str(seconds)]
    return [*common, *load, *_WAYS[way]]


def interim(output: str) -> Interim:
    """Return the throughput of all streams together, both ways, in each interval. For datagrams only if the client
    receives, because the number of sent datagrams does not show how many arrived.
    """
    try:
        points = [_carried(interval) for interval in read_json(output)["intervals"]]
    except (ToolError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
        return []
    return [point for point in points if point is not None]


def _carried(interval: Mapping[str, Any]) -> tuple[float, float] | None:
    """The end and the bits/s of one interval, None for one with sent datagrams only."""
    ways = [interval[name] for name in ("sum", "sum_bidir_reverse") if name in interval]
    if any("packets" in way and way["sender"] for way in ways):
        return None
    end = positive(ways[0]["end"], "end of an interval")
    return round(end, 3), round(sum(number(way["bits_per_second"], "bits_per_second") for way in ways))


def parse(output: str) -> list[Value]:
    """Return the received bits/s; for UDP also packets/s, with the share that was delivered and the jitter."""
    try:
        document = read_json(output, objects=mark_repeated)
    except JsonError as error:
        raise ToolError(f"iperf3 printed a document that {error}") from None
    if not isinstance(document, dict):
        raise ToolError("iperf3 printed JSON that is no report")
    return values(document)


def values(document: Mapping[str, Any]) -> list[Value]:
    """Return the result of `parse` from a report.

    iperf3 3.12 exits with status 0 even when it could not connect, so "error" is checked first.
    """
    if document.get("error"):
        raise ToolError(f"iperf3 says: {str(document['error'])[:200]}")
    end = document.get("end")
    received = end.get("sum_received") if isinstance(end, dict) else None
    refuse_different(end, "sum_received", "sum_received_bidir_reverse")
    if not isinstance(end, dict) or not isinstance(received, dict):
        raise ToolError("iperf3 printed no sum_received")
    rate = positive(received.get("bits_per_second"), "sum_received.bits_per_second")
    back = end.get("sum_received_bidir_reverse")
    if isinstance(back, dict):
        reverse = positive(back.get("bits_per_second"), "sum_received_bidir_reverse.bits_per_second")
        both = positive(rate + reverse, "sum of both ways")
        return [_throughput(both), _throughput(rate, ".forward"), _throughput(reverse, ".reverse")]
    return [_throughput(rate), *(_datagrams(received) if "lost_packets" in received else [])]


def refuse_different(end: object, *names: str) -> None:
    """Raise ToolError if the part "end" of a report has one of these names several times with different values."""
    for name in names:
        if isinstance(end, dict) and isinstance(end.get(name), Repeated):
            raise ToolError(f"end.{name} is there several times with different values: use iperf3 3.8 or later")


def _throughput(rate: float, way: str = "") -> Value:
    return Value(f"throughput{way}", rate, "bits/s", "higher")


def _datagrams(received: Mapping[str, Any]) -> list[Value]:
    """Further results for UDP; jitter is that of RFC 1889 and left out when it is zero.

    The delivered share instead of the lost one, because the latter can be zero, which cannot be compared.
    """
    sent = positive(received.get("packets"), "sum_received.packets")
    seconds = positive(received.get("seconds"), "sum_received.seconds")
    share = delivered_share(received, "sum_received")
    found = [
        Value("packets", positive(share * sent / seconds, "packets/s"), "packets/s", "higher"),
        Value("delivered", positive(100 * share, "share that came"), "%", "higher"),
    ]
    if jitter := number(received.get("jitter_ms", 0), "sum_received.jitter_ms"):
        found.append(Value("jitter", positive(1000 * jitter, "jitter"), "us", "lower"))
    return found


def delivered_share(total: Mapping[str, Any], where: str) -> float:
    """Return the share of datagrams that arrived, between 0 and 1, from a sum of iperf3's report.

    It is not derived from `lost_percent`, which counts other packets than `packets`. Raises ToolError for impossible
    numbers: losses below 0 or above `packets`, a share beyond 0 to 100 %, a jitter (RFC 1889, section 6.3.1) longer
    than the test.
    """
    sent = positive(total.get("packets"), f"{where}.packets")
    lost = number(total.get("lost_packets"), f"{where}.lost_packets")
    if not 0 <= lost <= sent:
        raise ToolError(f"{where}.lost_packets is {lost:g} of {sent:g} packets, which cannot be")
    percent = number(total.get("lost_percent", 0), f"{where}.lost_percent")
    if not 0 <= percent <= 100:
        raise ToolError(f"{where}.lost_percent is {percent:g}, which cannot be")
    seconds = number(total.get("seconds", 0), f"{where}.seconds")
    jitter = number(total.get("jitter_ms", 0), f"{where}.jitter_ms")
    if seconds and not 0 <= jitter <= 1000 * seconds:
        raise ToolError(f"{where}.jitter_ms is {jitter:g} in a test of {seconds:g} s, which cannot be")
    return 1 - lost / sent
