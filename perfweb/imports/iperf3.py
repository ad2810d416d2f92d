# SPDX-License-Identifier: BSD-2-Clause
"""Reports of `iperf3 --json` and `--json-stream`: one sample each, several may follow each other in a file."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from perfweb.imports.records import Files, Options, Record, data_sets
from perfweb.jsontext import check_depth, mark_repeated, refuse_constant
from perfweb.measuring.tools import ToolError, Value, iperf3, positive

_BLANKS = re.compile(r"\s*")


Reports = Iterator[tuple[int, str, dict[str, Any] | ToolError]]
"""Line, text and content of each report, or its error."""


def read(paths: Sequence[str], options: Options, files: Files) -> Iterator[Record]:
    """Yield a record for each report; the receiver's numbers are the sample."""
    reader = _Reader(options, files)
    for variant, boot, path, text in data_sets(paths, files):
        yield from files.isolated(path, reader.file(variant, boot, path, text))


@dataclass
class _Reader:
    """Reads the files of an import; `seen` has the place of each report by its digest."""

    options: Options
    files: Files
    seen: dict[bytes, tuple[Path, int]] = field(default_factory=dict)

    def file(self, variant: str, boot: str, path: Path, text: str) -> Iterator[Record]:
        samples, problems = 0, len(self.files.report.problems)
        for line, written, report in _assembled(_documents(text)):
            try:
                if isinstance(report, ToolError):
                    raise report
                if self._again(path, line, written):
                    continue
                samples += 1
                sample_boot = f"{boot}.{samples}" if self.options.boot_per_sample else boot
                yield Record(
                    path, line, variant, sample_boot, _test(report, self.options), _values(report),
                    seconds=_seconds(report), tool="iperf3", output=f"{written}\n", started=_started(report),
                )  # fmt: skip
            except ToolError as error:
                self.files.report.add(path, line, str(error))
        if not samples and len(self.files.report.problems) == problems:
            self.files.report.add(path, 0, "is empty")

    def _again(self, path: Path, line: int, written: str) -> bool:
        """Return whether a report repeats one before it in its file; it counts once.

        A report has the time and a random cookie of its test, so no two tests have equal reports. Raises ToolError for
        a copy in another file, which would count as another boot or variant.
        """
        digest = hashlib.sha256(" ".join(written.split()).encode()).digest()
        if digest not in self.seen:
            self.seen[digest] = path, line
            return False
        where, before = self.seen[digest]
        if where != path:
            raise ToolError(f"is the same measurement as {where}, line {before}: remove one of them")
        return True


def _documents(text: str) -> Reports:
    """Yield each JSON document of a file, up to the first error."""
    decoder = json.JSONDecoder(parse_constant=refuse_constant, object_pairs_hook=mark_repeated)
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


def _assembled(documents: Reports) -> Reports:
    """Yield reports. The events of `--json-stream`, from "start" to "end", become one report."""
    stream: list[str] = []
    began, report = 0, dict[str, Any]()
    for line, written, found in documents:
        event = found.get("event") if isinstance(found, dict) else None
        if stream and event in {None, "start"}:
            yield began, "", _UNFINISHED
            stream = []
        if event is None or isinstance(found, ToolError):
            yield line, written, found
            continue
        if event == "start" or not stream:
            began, report = line, {}
        stream.append(written)
        report[str(event)] = found.get("data")  # "interval" and others are not used
        if event == "end":
            yield began, "\n".join(stream), report
            stream = []
    if stream:
        yield began, "", _UNFINISHED


_UNFINISHED = ToolError("this stream of iperf3 has no end event: the test did not finish")


def _values(report: dict[str, Any]) -> tuple[Value, ...]:
    """Return the received part; for UDP an older iperf3 reports the sent part and the number of lost packets."""
    end = _part(report, "end")
    total = _part(end, "sum")
    iperf3.refuse_different(end, "sum")
    if "sum_received" in end or report.get("error") or not total:
        return tuple(iperf3.values(report))
    sent = positive(total.get("bits_per_second"), "sum.bits_per_second")
    share = iperf3.delivered_share(total, "sum")
    received = positive(sent * share, "what was received")
    return Value("throughput", received, "bits/s", "higher"), Value("throughput.sender", sent, "bits/s", "higher")


def _test(report: dict[str, Any], options: Options) -> str:
    """Name the test as the catalogue does: iperf3.STREAMS, with the protocol if it is not TCP, and the direction if it
    is not from the client.
    """
    start = _part(report, "start")
    wanted = _part(start, "test_start")
    connected = start.get("connected")
    first = connected[0] if isinstance(connected, list) and connected and isinstance(connected[0], dict) else {}
    family = "ipv6" if ":" in str(first.get("remote_host", "")) else "ipv4"
    streams = wanted.get("num_streams", 1)
    if isinstance(streams, bool) or not isinstance(streams, int) or not 1 <= streams <= 10_000:
        raise ToolError("start.test_start.num_streams is no number of streams")
    return options.test_name(f"iperf3{_protocol(start)}.{streams}{_direction(report)}", family)


def _protocol(start: dict[str, Any]) -> str:
    """The part of a test's name for the protocol, empty for TCP."""
    wanted = _part(start, "test_start")
    protocol = str(wanted.get("protocol", "TCP")).lower()
    if not re.fullmatch(r"[a-z0-9]{1,12}", protocol):
        raise ToolError("start.test_start.protocol is no name of a protocol")
    if wanted.get("mptcp") or start.get("mptcp"):
        protocol = "mptcp"
    return "" if protocol == "tcp" else f".{protocol}"


def _direction(report: dict[str, Any]) -> str:
    wanted = _part(_part(report, "start"), "test_start")
    # iperf3 3.12 does not report that both directions were requested.
    if "sum_received_bidir_reverse" in _part(report, "end"):
        return ".bidirectional"
    if wanted.get("bidir"):
        raise ToolError("both directions were measured, and the report has the sum of one: use iperf3 3.8 or later")
    return ".reverse" if wanted.get("reverse") else ""


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
    """Return the object of that name, empty if it is missing."""
    found = document.get(name)
    return found if isinstance(found, dict) else {}
