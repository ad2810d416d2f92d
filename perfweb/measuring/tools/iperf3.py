# SPDX-License-Identifier: BSD-2-Clause
"""iperf3, reading the JSON that `-J` prints at the end."""

from collections.abc import Mapping, Sequence
from typing import Any

from perfweb.jsontext import JsonError, Repeated, mark_repeated, read_json
from perfweb.measuring.tools.base import (
    SERVER_PORTS,
    Interim,
    ToolError,
    Value,
    family_option,
    json_number,
    json_positive,
    udp_payload,
)
from perfweb.runs.catalogue import Measure

# The server also refuses before it has noticed that the previous client ended. After that it closes its listening
# socket and opens a new one.
BUSY = ("the server is busy running a test", "unable to connect to server: Connection refused")

_ROUNDING = 0.02
"""Max difference of bytes that are computed from a rate and seconds, as a share; 3.12 prints all digits."""
_CONTRADICTS = 0.5
"""Difference of a rate from its bytes and seconds, as a share, that only another unit explains.

Bytes and seconds may be those of different ends or intervals.
"""

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
    end = json_positive(ways[0]["end"], "end of an interval")
    return round(end, 3), round(sum(json_number(way["bits_per_second"], "bits_per_second") for way in ways))


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
    check(document)
    end = part(document, "end")
    received = end.get("sum_received")
    if not isinstance(received, dict):
        raise ToolError("iperf3 printed no sum_received")
    rate = json_positive(received.get("bits_per_second"), "sum_received.bits_per_second")
    back = end.get("sum_received_bidir_reverse")
    if isinstance(back, dict):
        reverse = json_positive(back.get("bits_per_second"), "sum_received_bidir_reverse.bits_per_second")
        both = json_positive(rate + reverse, "sum of both ways")
        return [_throughput(both), _throughput(rate, ".forward"), _throughput(reverse, ".reverse")]
    return [_throughput(rate), *(_datagrams(received) if "lost_packets" in received else [])]


def part(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the object of that name, empty if it is missing."""
    found = document.get(name)
    return found if isinstance(found, dict) else {}


def check(document: Mapping[str, Any]) -> None:
    """Raise ToolError for a report in which a name of what is read has several values, or with impossible numbers in
    any sum or stream, whatever its version.
    """
    start, end = part(document, "start"), part(document, "end")
    sums = {name: total for name, total in end.items() if name.startswith("sum")}
    for name in ("start", "end"):
        if isinstance(document.get(name), Repeated):
            _refuse_repeated(document[name], name)
    for name in ("test_start", "connected", "timestamp"):
        _refuse_repeated(start.get(name), f"start.{name}")
    for name, total in sums.items():
        _refuse_repeated(total, f"end.{name}")
    streams = end.get("streams")
    for name, total in {**sums, **_udp_of(streams if isinstance(streams, list) else [])}.items():
        if isinstance(total, dict):
            _check_datagrams(total, name)
            _check_rate(total, name)
    if not part(start, "test_start").get("omit"):  # what is sent before a receiver counts may arrive when it counts
        for way in ("", "_bidir_reverse"):
            _check_received(part(end, f"sum_sent{way}"), part(end, f"sum_received{way}"), f"sum_received{way}")


def _refuse_repeated(found: object, name: str) -> None:
    """Raise ToolError if a part of a report, or a part of it, has several values of its name."""
    if isinstance(found, Repeated):
        raise ToolError(f"{name} is there several times with different values: use iperf3 3.8 or later")
    if isinstance(found, dict):
        for inner, value in found.items():
            _refuse_repeated(value, f"{name}.{inner[:40]}")
    if isinstance(found, list):
        for place, value in enumerate(found):
            _refuse_repeated(value, f"{name}[{place}]")


def _udp_of(streams: Sequence[object]) -> dict[str, Any]:
    """Return the datagrams of each stream by the name of their part."""
    return {
        f"streams[{place}].udp": stream.get("udp") for place, stream in enumerate(streams) if isinstance(stream, dict)
    }


def _throughput(rate: float, way: str = "") -> Value:
    return Value(f"throughput{way}", rate, "bits/s", "higher")


def _datagrams(received: Mapping[str, Any]) -> list[Value]:
    """Further results for UDP; jitter is that of RFC 1889 and left out when it is zero.

    The delivered share instead of the lost one, because the latter can be zero, which cannot be compared.
    """
    sent = json_positive(received.get("packets"), "sum_received.packets")
    seconds = json_positive(received.get("seconds"), "sum_received.seconds")
    share = delivered_share(received, "sum_received")
    found = [
        Value("packets", json_positive(share * sent / seconds, "packets/s"), "packets/s", "higher"),
        Value("delivered", json_positive(100 * share, "share that came"), "%", "higher"),
    ]
    if jitter := json_number(received.get("jitter_ms", 0), "sum_received.jitter_ms"):
        found.append(Value("jitter", json_positive(1000 * jitter, "jitter"), "us", "lower"))
    return found


def delivered_share(total: Mapping[str, Any], where: str) -> float:
    """Return the share of datagrams that arrived, between 0 and 1, from a sum of iperf3's report that check() allows.

    It is not derived from `lost_percent`, which counts other packets than `packets`. Raises ToolError if none was sent.
    """
    sent = json_positive(total.get("packets"), f"{where}.packets")
    return 1 - json_number(total.get("lost_packets"), f"{where}.lost_packets") / sent


def _check_rate(total: Mapping[str, Any], where: str) -> None:
    """Raise ToolError if a rate is not that of the bytes and seconds beside it."""
    if not {"bytes", "seconds", "bits_per_second"} <= total.keys():
        return
    count, seconds, rate = (
        json_number(total[name], f"{where}.{name}") for name in ("bytes", "seconds", "bits_per_second")
    )
    reported = rate * seconds / 8
    if abs(reported - count) > _CONTRADICTS * max(reported, count):
        raise ToolError(
            f"{where}.bits_per_second is {rate:g}, but {count:g} bytes in {seconds:g} s are others, which cannot be"
        )


def _check_received(sent: Mapping[str, Any], received: Mapping[str, Any], where: str) -> None:
    """Raise ToolError if more bytes were received than sent. Not of datagrams, which a network may duplicate."""
    left, came = _bytes(sent), _bytes(received)
    if left is None or came is None or "packets" in received:
        return
    exact = "bytes" in sent and "bytes" in received
    if came > left * (1 if exact else 1 + _ROUNDING):
        raise ToolError(f"{where} has {came:g} bytes, but {left:g} were sent, which cannot be")


def _bytes(total: Mapping[str, Any]) -> float | None:
    """Return the bytes of a sum, from its rate and time if they are missing; None without these."""
    if "bytes" in total:
        return json_number(total["bytes"], "bytes")
    if "seconds" in total and "bits_per_second" in total:
        return json_number(total["bits_per_second"], "bits_per_second") * json_number(total["seconds"], "seconds") / 8
    return None


def _check_datagrams(total: Mapping[str, Any], where: str) -> None:
    """Raise ToolError for impossible numbers: losses below 0 or above `packets`, a share beyond 0 to 100 %, a jitter
    (RFC 1889, section 6.3.1) longer than the test. Each is checked where it is reported, which depends on the version.
    """
    if "lost_packets" in total:
        sent = json_number(total.get("packets"), f"{where}.packets")
        lost = json_number(total["lost_packets"], f"{where}.lost_packets")
        if not 0 <= lost <= sent:
            raise ToolError(f"{where}.lost_packets is {lost:g} of {sent:g} packets, which cannot be")
    percent = json_number(total.get("lost_percent", 0), f"{where}.lost_percent")
    if not 0 <= percent <= 100:
        raise ToolError(f"{where}.lost_percent is {percent:g}, which cannot be")
    if "jitter_ms" in total:
        seconds = json_number(total.get("seconds", 0), f"{where}.seconds")
        jitter = json_number(total["jitter_ms"], f"{where}.jitter_ms")
        if jitter < 0 or (seconds and jitter > 1000 * seconds):
            raise ToolError(f"{where}.jitter_ms is {jitter:g} in a test of {seconds:g} s, which cannot be")
