# SPDX-License-Identifier: BSD-2-Clause
"""Reports of `iperf3 --json`: one sample each, several may follow each other in a file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from perfweb.imports.records import Files, Options, Record, data_sets
from perfweb.jsontext import check_depth, refuse_constant
from perfweb.measuring.tools import ToolError, Value, iperf3, positive

_BLANKS = re.compile(r"\s*")


def read(paths: Sequence[str], options: Options, files: Files) -> Iterator[Record]:
    """Yield a record for each report; what the receiver got is the sample."""
    for variant, boot, path, text in data_sets(paths, files):
        yield from files.isolated(path, _file(variant, boot, path, text, options, files))


def _file(variant: str, boot: str, path: Path, text: str, options: Options, files: Files) -> Iterator[Record]:
    samples = 0
    for line, written, report in _reports(text):
        samples += 1
        sample_boot = f"{boot}.{samples}" if options.boot_per_sample else boot
        try:
            if isinstance(report, ToolError):
                raise report
            yield Record(
                path, line, variant, sample_boot, _test(report, options), _values(report), seconds=_seconds(report),
                tool="iperf3", output=f"{written}\n", started=_started(report),
            )  # fmt: skip
        except ToolError as error:
            files.report.add(path, line, str(error))
    if not samples:
        files.report.add(path, 0, "is empty")


def _reports(text: str) -> Iterator[tuple[int, str, dict[str, Any] | ToolError]]:
    """Yield the line, the text and the content of each document, or what is wrong with the one it stops at."""
    decoder = json.JSONDecoder(parse_constant=refuse_constant)
    place, line = 0, 1
    while True:
        start = _BLANKS.match(text, place).end()  # type: ignore[union-attr]
        line += text.count("\n", place, start)
        if start == len(text):
            return
        try:
            found, place = decoder.raw_decode(text, start)
            check_depth(found)
        except json.JSONDecodeError as error:
            yield line + text.count("\n", start, error.pos), "", ToolError(f"is not JSON: {error.msg}")
            return
        except (ValueError, RecursionError) as error:
            yield line, "", ToolError(f"is not JSON that can be read: {type(error).__name__}: {str(error)[:80]}")
            return
        document = found if isinstance(found, dict) else ToolError("is JSON, but no report of iperf3")
        yield line, text[start:place], document
        line += text.count("\n", start, place)


def _values(report: dict[str, Any]) -> tuple[Value, ...]:
    """What the receiver got; an older iperf3 tells for UDP what was sent, and how many packets of it were lost."""
    end = _part(report, "end")
    total = _part(end, "sum")
    if "sum_received" in end or report.get("error") or not total:
        return tuple(iperf3.values(report))
    sent = positive(total.get("bits_per_second"), "sum.bits_per_second")
    packets = positive(total.get("packets"), "sum.packets")
    lost = total.get("lost_packets")
    if isinstance(lost, bool) or not isinstance(lost, int) or not 0 <= lost <= packets:
        raise ToolError("sum.lost_packets is no number of packets")
    received = positive(sent * (1 - lost / packets), "what was received")
    return Value("throughput", received, "bits/s", "higher"), Value("throughput.sender", sent, "bits/s", "higher")


def _test(report: dict[str, Any], options: Options) -> str:
    """Name the test as the catalogue does: iperf3.STREAMS, with udp, and the way where it is another."""
    start = _part(report, "start")
    asked = _part(start, "test_start")
    connected = start.get("connected")
    first = connected[0] if isinstance(connected, list) and connected and isinstance(connected[0], dict) else {}
    family = "ipv6" if ":" in str(first.get("remote_host", "")) else "ipv4"
    streams = asked.get("num_streams", 1)
    if isinstance(streams, bool) or not isinstance(streams, int) or not 1 <= streams <= 10_000:
        raise ToolError("start.test_start.num_streams is no number of streams")
    udp = ".udp" if str(asked.get("protocol", "TCP")).upper() == "UDP" else ""
    # iperf3 3.12 does not say that both ways were asked for.
    both = ".bidirectional" if "sum_received_bidir_reverse" in _part(report, "end") else ""
    way = both or (".reverse" if asked.get("reverse") else "")
    return options.test_name(f"iperf3{udp}.{streams}{way}", family)


def _seconds(report: dict[str, Any]) -> float:
    end = _part(report, "end")
    seconds = (_part(end, "sum_received") or _part(end, "sum")).get("seconds")
    return positive(seconds, "end.seconds") if seconds is not None else 0.0


def _started(report: dict[str, Any]) -> datetime | None:
    seconds = _part(_part(report, "start"), "timestamp").get("timesecs")
    if isinstance(seconds, bool) or not isinstance(seconds, int) or not 0 < seconds < 2**32:
        return None
    return datetime.fromtimestamp(seconds, UTC)


def _part(document: dict[str, Any], name: str) -> dict[str, Any]:
    """The object of that name, empty where there is none."""
    found = document.get(name)
    return found if isinstance(found, dict) else {}
