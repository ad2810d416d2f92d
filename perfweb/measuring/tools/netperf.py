# SPDX-License-Identifier: BSD-2-Clause
"""netperf with selected output (`-k`), as its manual describes in "Omni Output Selection"."""

import re
from collections.abc import Mapping

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

_TESTS = {
    "tcp.rr": ("TCP_RR", []),
    "udp.rr": ("UDP_RR", []),
    # Six fragments each way with frames of 1500 bytes. Not a stream of such datagrams: if their sender is faster than
    # the receiver, each loses some fragment, and none arrives.
    "udp.rr.8000": ("UDP_RR", ["-r", "8000,8000"]),
    "tcp.crr": ("TCP_CRR", []),
    # The classic TCP_CC does not support selected output.
    "tcp.cc": ("omni", ["-c", "-d", "cc"]),
    "tcp.stream": ("TCP_STREAM", []),
    "tcp.maerts": ("TCP_MAERTS", []),
    # "Using netperf for Bidirectional Transfer" in its manual: four requests at a time, with responses of their size.
    # All of them fit into TCP's initial buffers, because otherwise each end could wait for the other to read.
    "tcp.bidirectional": ("TCP_RR", ["-r", "16384,16384", "-b", "3"]),
    # -R 1: without it netperf sets SO_DONTROUTE and nothing passes a router.
    "udp.stream": ("UDP_STREAM", ["-R", "1"]),
}
# Throughput five times a second. With a negative time netperf checks the clock after each call; with a positive one it
# guesses the number of calls, and reports intervals of up to a second.
_MEANWHILE = ["-D", "-0.2"]
_INTERIM = re.compile(
    r"^NETPERF_INTERIM_RESULT[^=\n]*=(.+)\nNETPERF_UNITS[^=\n]*=(.+)\nNETPERF_INTERVAL[^=\n]*=(.+)$", re.MULTILINE
)
_UNIT = re.compile(r"10\^(3|6|9|12)bits/s(?:ec)?|([KMG])Bytes/s(?:ec)?")
_OUTPUT = "THROUGHPUT,THROUGHPUT_UNITS,ELAPSED_TIME"
ROUNDED_SECONDS = 0.01
"""How far a printed time may be from the real one."""
_ENDS = (("LOCAL_SEND_THROUGHPUT", "REMOTE_RECV_THROUGHPUT"), ("REMOTE_SEND_THROUGHPUT", "LOCAL_RECV_THROUGHPUT"))
_ROUNDING = 0.01
_LATENCIES = ("MEAN_LATENCY", "MIN_LATENCY", "P50_LATENCY", "P90_LATENCY", "P99_LATENCY", "MAX_LATENCY")


def command(measure: Measure, address: str, seconds: int, prefix: str) -> list[str]:  # noqa: ARG001
    test, options = _TESTS[measure.name]
    if test == "UDP_STREAM":
        options = [*options, "-m", udp_payload(address)]
    port, family = str(SERVER_PORTS["netserver"]), family_option(address)
    common = ["netperf", family, "-H", address, "-p", port, "-l", str(seconds), "-P", "0"]
    if measure.metric == "throughput":
        if test != "UDP_STREAM":  # netperf reports the sent bytes, not the received ones
            common += _MEANWHILE
        # Not -f b: netperf 2.7.0 then prints bytes and calls them "10^0bits/s".
        return [*common, "-f", "k", "-t", test, "--", *options, "-k", _OUTPUT]
    # -j stores the time of every transaction for the percentiles.
    return [*common, "-j", "-t", test, "--", *options, "-k", ",".join([_OUTPUT, *_LATENCIES])]


def parse(output: str) -> list[Value]:
    """Throughput in bits/s, or transactions/s with their latencies in microseconds."""
    fields: dict[str, str] = {}
    for line in output.splitlines():
        name, equals, value = line.partition("=")
        if equals and fields.setdefault(name, value) != value:
            raise ToolError(f"netperf printed {name[:40]} twice, with different values")
    return values(fields)


def interim(output: str) -> Interim:
    """Return the throughput of each interval, both ways together. Their lengths are added, because NETPERF_ENDING is
    the time of day, which may be set.
    """
    points: Interim = []
    end = 0.0
    try:
        for rate, unit, length in _INTERIM.findall(output):
            end = positive(end + positive(length, "NETPERF_INTERVAL"), "sum of NETPERF_INTERVALs")
            points.append((round(end, 3), round(number(rate, "NETPERF_INTERIM_RESULT") * bits(unit))))
    except (ToolError, OverflowError):
        return []
    return points


def values(fields: Mapping[str, str]) -> list[Value]:
    """Return the result of `parse` from the values of the output selectors."""
    if "THROUGHPUT" not in fields:
        raise ToolError("netperf printed no THROUGHPUT")
    for ends in _ENDS:
        _check_ends(fields, *ends)
    throughput = positive(fields["THROUGHPUT"], "THROUGHPUT")
    unit = fields.get("THROUGHPUT_UNITS", "")
    if unit == "Trans/s":
        return [Value("transactions", throughput, "transactions/s", "higher"), *_latencies(fields)]
    return [Value("throughput", throughput * bits(unit), "bits/s", "higher")]


def bits(unit: str) -> float:
    """Return the bits/s in a unit of throughput; netperf's kilobytes have 1024 bytes.

    10^0bits/s is refused: see `command`.
    """
    found = _UNIT.fullmatch(unit)
    if found is None:
        raise ToolError(f"netperf printed THROUGHPUT in an unknown unit: {unit[:40]!r}")
    power, prefix = found.groups()
    return 10.0 ** int(power) if power else 8.0 * 1024 ** (1 + "KMG".index(prefix))


def _check_ends(fields: Mapping[str, str], sender: str, receiver: str) -> None:
    """Raise ToolError if an end received more than the other end sent in the same time."""
    if not fields.get(sender) or not fields.get(receiver):
        return
    sent, received = number(fields[sender], sender), number(fields[receiver], receiver)
    if received > sent * (1 + _ROUNDING):
        raise ToolError(f"{receiver} is {received:g}, but {sender} is {sent:g}, which cannot be")


def _latencies(fields: Mapping[str, str]) -> list[Value]:
    """Return the latencies that were measured.

    A percentile below the resolution of netperf's histogram is printed as 0, and one that it did not measure as -1;
    both are left out. Raises ToolError for other numbers that cannot be: below 0, or longer than the test.
    """
    found = {name: number(fields[name], name) for name in _LATENCIES if fields.get(name, "")}
    seconds = number(fields["ELAPSED_TIME"], "ELAPSED_TIME") if fields.get("ELAPSED_TIME") else 0.0
    for name, value in found.items():
        if (value < 0 and value != -1) or (seconds and value > 1e6 * (seconds + ROUNDED_SECONDS)):
            raise ToolError(f"{name} is {value:g} us in a test of {seconds:g} s, which cannot be")
    _check_order(found)
    return [
        Value(f"latency.{name.split('_')[0].lower()}", value, "us", "lower")
        for name, value in found.items()
        if value > 0
    ]


def _check_order(latencies: Mapping[str, float]) -> None:
    """Raise ToolError if the mean is outside of the range, whose ends netperf prints as whole microseconds."""
    mean = latencies.get("MEAN_LATENCY", 0)
    low, high = latencies.get("MIN_LATENCY", 0), latencies.get("MAX_LATENCY", 0)
    if mean > 0 and not low - 1 <= mean <= (high if high > 0 else mean) + 1:
        raise ToolError(f"MEAN_LATENCY is {mean:g} us, not between min, {low:g} us, and max, {high:g} us")
