# SPDX-License-Identifier: BSD-2-Clause
"""What netperf prints: tables of the classic tests, chosen output as `name=value` lines (-k) and as CSV (-o).

A file may hold the output of many calls, one after the other.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from perfweb.imports.records import Files, Options, Record, data_sets, lines, number
from perfweb.measuring.tools import ToolError, Value, netperf

_BANNER = re.compile(
    r"(?:MIGRATED )?(?P<test>TCP STREAM|UDP STREAM|TCP MAERTS|TCP REQUEST/RESPONSE|UDP REQUEST/RESPONSE"
    r"|TCP Connect/Request/Response|OMNI \S+) TEST from .* (?P<family>AF_INET6?)\b",
    re.ASCII,
)
_MEASURES = {
    "TCP STREAM": "tcp.stream", "TCP_STREAM": "tcp.stream",
    "UDP STREAM": "udp.stream", "UDP_STREAM": "udp.stream",
    "TCP MAERTS": "tcp.maerts", "TCP_MAERTS": "tcp.maerts",
    "TCP REQUEST/RESPONSE": "tcp.rr", "TCP_RR": "tcp.rr",
    "UDP REQUEST/RESPONSE": "udp.rr", "UDP_RR": "udp.rr",
    "TCP Connect/Request/Response": "tcp.crr", "TCP_CRR": "tcp.crr",
}  # fmt: skip
_FIELD = re.compile(r"([A-Z][A-Z0-9_]*)=(.*)", re.ASCII)
_COMMAND_TEST = re.compile(r"-t\s*(\S+)")
_UNIT = re.compile(r"(?:10\^\d+bits|[KMG]Bytes)/s(?:ec)?", re.ASCII)
_ROW = re.compile(r"\s*[+-]?(?:\d|nan\b|inf\b)[\s\w.+-]*", re.ASCII | re.IGNORECASE)
# Lines between the outputs of calls, as raw data of this project has them.
_MARK = re.compile(r"(?:==|--) .*")
# How the headings of -o spell the selectors that are read.
_HEADINGS = {
    "Throughput": "THROUGHPUT",
    "Throughput Units": "THROUGHPUT_UNITS",
    "Elapsed Time (sec)": "ELAPSED_TIME",
    "Mean Latency Microseconds": "MEAN_LATENCY",
    "50th Percentile Latency Microseconds": "P50_LATENCY",
    "90th Percentile Latency Microseconds": "P90_LATENCY",
    "99th Percentile Latency Microseconds": "P99_LATENCY",
    "Command Line": "COMMAND_LINE",
}


@dataclass(frozen=True)
class _Sample:
    test: str
    values: tuple[Value, ...]
    seconds: float
    command: str = ""


@dataclass
class _Reader:
    """How far the reading of a file is: the last banner, the unit and headings of its table, what is not complete."""

    options: Options
    kind: str = ""
    family: str = "ipv4"
    unit: str = ""
    columns: list[str] = field(default_factory=list)
    chosen: dict[str, str] = field(default_factory=dict)
    sent: Value | None = None
    """What a UDP stream sent: the row with what was received follows."""

    def feed(self, content: str) -> _Sample | None:
        """Return the sample that a line completes. Raises ToolError for a line that netperf does not print."""
        found = _FIELD.fullmatch(content)
        if found and found[1] not in self.chosen:
            self.chosen[found[1]] = found[2]
            return None
        # Something else, or the same again, ends what was chosen.
        chosen, self.chosen = self.chosen, {found[1]: found[2]} if found else {}
        if found or chosen:
            rest = None if found else self._line(content)
            return self._chosen(chosen) if chosen else rest
        return self._line(content)

    def _line(self, content: str) -> _Sample | None:
        if banner := _BANNER.match(content):
            self.kind, self.family = banner["test"], "ipv6" if banner["family"].endswith("6") else "ipv4"
            self.unit, self.columns, self.sent = "", [], None
        elif "," in content:
            try:
                return self._comma(next(csv.reader([content])))
            except csv.Error as error:
                raise ToolError(f"is not CSV: {error}") from None
        elif self.kind and _ROW.fullmatch(content):
            return self._row(content.split())
        elif self.kind and (unit := _UNIT.search(content)):
            self.unit = unit[0]
        elif not self.kind and content.strip() and not _MARK.fullmatch(content):
            raise ToolError(f"netperf prints no such line: {content.strip()[:60]!r}")
        return None

    def _chosen(self, chosen: Mapping[str, str]) -> _Sample:
        asked = _COMMAND_TEST.search(chosen.get("COMMAND_LINE", ""))
        kind = asked[1] if asked and self.kind not in _MEASURES else self.kind
        elapsed = chosen.get("ELAPSED_TIME", "")
        seconds = number(elapsed, "ELAPSED_TIME") if elapsed else 0.0
        number(chosen.get("THROUGHPUT", ""), "THROUGHPUT")
        return _Sample(
            self._test(kind), tuple(netperf.values(chosen)), seconds, chosen.get("COMMAND_LINE", "").strip('"')
        )

    def _comma(self, cells: Sequence[str]) -> _Sample | None:
        """A row of -o: headings first, then the values of each call."""
        names = [_HEADINGS.get(cell.strip(), cell.strip()) for cell in cells]
        if "THROUGHPUT" in names:
            if len(set(names)) < len(names):
                raise ToolError("a heading stands there twice")
            self.columns = names
            return None
        if not self.columns:
            raise ToolError("values without headings: let netperf print them (leave out -P 0)")
        if len(cells) != len(self.columns):
            raise ToolError(f"{len(cells)} values below {len(self.columns)} headings")
        return self._chosen(dict(zip(self.columns, cells, strict=True)))

    def _row(self, cells: Sequence[str]) -> _Sample | None:
        """A row of numbers of a classic test. Columns for use of the CPU (-c, -C) stand behind those that are read."""
        if self.kind == "UDP STREAM":
            return self._udp_row(cells)
        if self.kind in {"TCP STREAM", "TCP MAERTS"} and len(cells) >= 5:
            return self._classic(self._throughput(cells[4]), cells[3])
        if self.kind.upper().endswith("/RESPONSE"):
            if len(cells) >= 6:
                return self._classic(
                    Value("transactions", number(cells[5], "Rate"), "transactions/s", "higher"), cells[4]
                )
            if len(cells) == 2:
                return None  # the sizes of the remote socket's buffers
        raise ToolError(f"{len(cells)} numbers are no row of a {self.kind} test")

    def _udp_row(self, cells: Sequence[str]) -> _Sample | None:
        """Two rows: what was sent, then what was received, which is what counts."""
        if self.sent is None and len(cells) >= 6:
            self.sent = self._throughput(cells[5], ".sender")
            return None
        sent, self.sent = self.sent, None
        if sent is None or len(cells) < 4:
            raise ToolError(f"{len(cells)} numbers are no row of a {self.kind} test")
        return self._classic(self._throughput(cells[3]), cells[1], sent)

    def _throughput(self, cell: str, end: str = "") -> Value:
        return Value(f"throughput{end}", number(cell, "Throughput") * netperf.bits(self.unit), "bits/s", "higher")

    def _classic(self, value: Value, elapsed: str, *others: Value) -> _Sample:
        return _Sample(self._test(self.kind), (value, *others), number(elapsed, "Elapsed Time"))

    def _test(self, kind: str) -> str:
        if not self.options.test and kind not in _MEASURES:
            raise ToolError(
                "the output does not say what was tested: name it with --test, such as tcp.rr/host-host/ipv4"
            )
        return self.options.test_name(_MEASURES.get(kind, ""), self.family)


def read(paths: Sequence[str], options: Options, files: Files) -> Iterator[Record]:
    """Yield a record for each call of netperf, with all it printed since the one before."""
    for variant, boot, path, text in data_sets(paths, files):
        yield from files.isolated(path, _file(variant, boot, path, text, options, files))


def _file(variant: str, boot: str, path: Path, text: str, options: Options, files: Files) -> Iterator[Record]:
    reader, kept, count = _Reader(options), list[str](), 0
    found: Record | None = None
    # A blank line at the end completes what was chosen.
    for line, content in [*lines(text), (text.count("\n") + 1, "")]:
        kept.append(f"{content}\n")
        try:
            sample = reader.feed(content)
        except ToolError as error:
            files.report.add(path, line, str(error))
            continue
        if sample:
            if found:
                yield found
            count += 1
            sample_boot = f"{boot}.{count}" if options.boot_per_sample else boot
            found = Record(
                path, line, variant, sample_boot, sample.test, sample.values, seconds=sample.seconds,
                tool="netperf", command=sample.command, output="".join(kept),
            )  # fmt: skip
            kept.clear()
    if found:
        yield replace(found, output=found.output + "".join(kept))
    else:
        files.report.add(path, 0, "has no result of netperf")
