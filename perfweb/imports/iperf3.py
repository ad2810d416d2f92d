# SPDX-License-Identifier: BSD-2-Clause
"""Reports of `iperf3 --json` and `--json-stream`: one sample each, several may follow each other in a file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from perfweb.imports.records import Files, Options, Record, data_sets
from perfweb.jsontext import Repeated, check_depth, mark_repeated, refuse_constant
from perfweb.measuring.tools import ToolError, Value, iperf3
from perfweb.measuring.tools.base import json_positive

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
    """Reads the files of an import; `seen` has the place of each report by its content and its end."""

    options: Options
    files: Files
    seen: dict[object, tuple[Path, int]] = field(default_factory=dict)

    def file(self, variant: str, boot: str, path: Path, text: str) -> Iterator[Record]:
        samples, problems = 0, len(self.files.report.problems)
        for line, written, report in _assembled(_documents(text)):
            try:
                if isinstance(report, ToolError):
                    raise report
                if self._again(path, line, report):
                    continue
                values = _values(report)
                samples += 1
                sample_boot = f"{boot}.{samples}" if self.options.boot_per_sample else boot
                yield Record(
                    path, line, variant, sample_boot, _test(report, self.options), values,
                    seconds=_seconds(report), tool="iperf3", output=f"{written}\n", started=_started(report),
                )  # fmt: skip
            except ToolError as error:
                self.files.report.add(path, line, str(error))
        if not samples and len(self.files.report.problems) == problems:
            self.files.report.add(path, 0, "is empty")

    def _again(self, path: Path, line: int, report: dict[str, Any]) -> bool:
        """Return whether a report repeats one before it in its file; it counts once.

        A report has the time and a random cookie of its test, so no two tests have equal reports. Order, white space
        and intervals do not matter: iperf3 prints the events of --json-stream-full-output and then the whole report.
        Raises ToolError for a copy in another file, which would count as another boot or variant, and for a report of
        the other end of the same test.
        """
        key = _comparable({name: report.get(name) for name in ("start", "end", "error")})
        ends = _ends(iperf3.part(report, "start"))
        other = self.seen.get(ends[1]) if ends else None
        again = key in self.seen  # a copy may be in the same line, so the place is no identity
        where, before = found = other or self.seen.setdefault(key, (path, line))
        if other or where != path:
            raise ToolError(f"is the same measurement as {where}, line {before}: remove one of them")
        if ends:
            self.seen.setdefault(ends[0], found)
        return again


def _ends(start: dict[str, Any]) -> tuple[object, object] | None:
    """Return identities of this end and of the other end of a test, or None if a report does not name its end.

    Client and server report the same cookie.
    """
    cookie, client, server = start.get("cookie"), "connecting_to" in start, "accepted_connection" in start
    if not isinstance(cookie, str) or client == server:
        return None
    return ("end", cookie, client), ("end", cookie, server)


def _comparable(value: object) -> object:
    """Return a JSON value as one that is equal for equal values, whatever the order of names in objects."""
    if isinstance(value, dict):
        return frozenset((name, _comparable(item)) for name, item in value.items())
    if isinstance(value, list):
        return tuple(map(_comparable, value))
    return repr(value) if isinstance(value, Repeated) else value


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
            reason = ToolError(f"is not JSON, which iperf3 prints with --json: {error.msg}")
            yield line + text.count("\n", start, error.pos), "", reason
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
            yield began, "", _unfinished(report)
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
        yield began, "", _unfinished(report)


def _unfinished(events: dict[str, Any]) -> ToolError:
    """Return the error for the events of a test that has no end event."""
    reason = f" (iperf3 says: {str(events['error'])[:200]})" if events.get("error") else ""
    return ToolError(f"this stream of iperf3 has no end event: the test did not finish{reason}")


def _values(report: dict[str, Any]) -> tuple[Value, ...]:
    """Return the received part; for UDP an older iperf3 reports the sent part and the number of lost packets."""
    end = iperf3.part(report, "end")
    total = iperf3.part(end, "sum")
    if "sum_received" in end or report.get("error") or not total:
        return tuple(iperf3.values(report))
    iperf3.check(report)
    sent = json_positive(total.get("bits_per_second"), "sum.bits_per_second")
    share = iperf3.delivered_share(total, "sum")
    received = json_positive(sent * share, "what was received")
    return Value("throughput", received, "bits/s", "higher"), Value("throughput.sender", sent, "bits/s", "higher")


def _test(report: dict[str, Any], options: Options) -> str:
    """Name the test as the catalogue does: iperf3.STREAMS, with the protocol if it is not TCP, and the direction if it
    is not from the client.
    """
    start = iperf3.part(report, "start")
    wanted = iperf3.part(start, "test_start")
    if not wanted and not options.test:
        raise ToolError("has no start.test_start, which names protocol and streams: name the test with --test")
    connected = start.get("connected")
    first = connected[0] if isinstance(connected, list) and connected and isinstance(connected[0], dict) else {}
    streams = wanted.get("num_streams", None if wanted else 1)
    if isinstance(streams, bool) or not isinstance(streams, int) or not 1 <= streams <= 10_000:
        raise ToolError("start.test_start.num_streams is no number of streams")
    return options.test_name(f"iperf3{_protocol(start)}.{streams}{_direction(report)}", _family(first))


def _family(connection: dict[str, Any]) -> str:
    """The IP version of packets: a server that accepts both reports IPv4 peers as ::ffff:192.0.2.1 (RFC 4291, section
    2.5.5.2).
    """
    host = str(connection.get("remote_host", "")).lower().removeprefix("::ffff:")
    return "ipv6" if ":" in host else "ipv4"


def _protocol(start: dict[str, Any]) -> str:
    """The part of a test's name for the protocol, empty for TCP."""
    wanted = iperf3.part(start, "test_start")
    protocol = wanted.get("protocol", None if wanted else "TCP")
    if not isinstance(protocol, str) or not re.fullmatch(r"[A-Za-z0-9]{1,12}", protocol, re.ASCII):
        raise ToolError("start.test_start.protocol is no name of a protocol")
    if wanted.get("mptcp") or start.get("mptcp"):
        protocol = "mptcp"
    return "" if protocol.lower() == "tcp" else f".{protocol.lower()}"


def _direction(report: dict[str, Any]) -> str:
    wanted = iperf3.part(iperf3.part(report, "start"), "test_start")
    end = iperf3.part(report, "end")
    if "sum_received_bidir_reverse" in end:
        return ".bidirectional"
    # iperf3 3.12 does not report that both directions were requested.
    if wanted.get("bidir") or any(name.endswith("_bidir_reverse") for name in end):
        raise ToolError("both directions were measured, and the report has the sum of one: use iperf3 3.8 or later")
    return ".reverse" if wanted.get("reverse") else ""


def _seconds(report: dict[str, Any]) -> float:
    end = iperf3.part(report, "end")
    seconds = (iperf3.part(end, "sum_received") or iperf3.part(end, "sum")).get("seconds")
    return json_positive(seconds, "end.seconds") if seconds is not None else 0.0


def _started(report: dict[str, Any]) -> datetime | None:
    seconds = iperf3.part(iperf3.part(report, "start"), "timestamp").get("timesecs")
    if isinstance(seconds, bool) or not isinstance(seconds, int) or not 0 < seconds < 2**32:
        return None
    return datetime.fromtimestamp(seconds, UTC)
