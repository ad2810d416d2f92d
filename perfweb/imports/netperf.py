# SPDX-License-Identifier: BSD-2-Clause
"""The output of netperf: tables of the classic tests and of -O, `name=value` lines (-k), and CSV (-o).

A file may hold the output of many calls, one after the other.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from perfweb.imports.netperf_tables import CAME, HEADINGS, KIND, LEFT, SENT, SIZE, Table, by_heading, is_row
from perfweb.imports.records import Files, Options, Record, data_sets, lines, number
from perfweb.measuring.tools import ToolError, Value, netperf, positive

_BANNER = re.compile(r"(?:MIGRATED )?(\S.{0,60}?) TEST (?:from|to) ")
"""Before netperf 2.4 a banner names only the host that the test is to."""
_FAMILY = re.compile(r"\bAF_(?:INET6|INET|UNSPEC|UNIX)\b", re.ASCII)
_MEASURES = {
    "TCP STREAM": "tcp.stream", "TCP_STREAM": "tcp.stream",
    "UDP STREAM": "udp.stream", "UDP_STREAM": "udp.stream",
    "TCP MAERTS": "tcp.maerts", "TCP_MAERTS": "tcp.maerts",
    "TCP SENDFILE": "tcp.sendfile", "TCP_SENDFILE": "tcp.sendfile",
    "TCP REQUEST/RESPONSE": "tcp.rr", "TCP_RR": "tcp.rr",
    "UDP REQUEST/RESPONSE": "udp.rr", "UDP_RR": "udp.rr",
    "TCP Connect/Request/Response": "tcp.crr", "TCP_CRR": "tcp.crr",
    "TCP Connect/Close": "tcp.cc", "TCP_CC": "tcp.cc",
}  # fmt: skip
_TRANSACTIONS = frozenset({"tcp.rr", "udp.rr", "tcp.crr", "tcp.cc"})
_KINDS = {**dict.fromkeys(_TRANSACTIONS, "transactions"), "udp.stream": "datagrams"}
"""The kind of the tables of each measure; those of all others are of streams."""
_FAMILIES = {"AF_INET": "ipv4", "AF_INET6": "ipv6"}
_READ = frozenset(HEADINGS.values())
"""Columns that are read; netperf 2.7.0 itself repeats others in `-o all`."""
_ROUNDING, _LAST_DIGIT = 0.01, 0.01
"""Max difference of a rate from its datagrams, as a share and in its unit, beyond that of the rounded time."""
_FIELD = re.compile(r"([A-Z][A-Z0-9_]*)=(.*)", re.ASCII)
_COMMAND_TEST = re.compile(r"-t\s*(\S+)")
_ASIDE = re.compile(
    r"(?:==|--) .*"  # between the outputs of calls, as in raw data of this project
    r"|(?:rc|exit|status)=0"  # of a script that prints the status of each call
    r"|!!!.*"  # a warning: the confidence interval is wider than requested
    r"|Interim result:.*|NETPERF_(?:INTERIM_RESULT|UNITS|INTERVAL|ENDING)\[\d+\]=.*"  # of -D
    r"|(?:catcher|enable_enobufs|netperf)\b.*"
)
"""Lines between others that do not belong to the result."""


@dataclass(frozen=True)
class _Sample:
    test: str
    values: tuple[Value, ...]
    seconds: float
    command: str = ""


@dataclass
class _Reader:
    """The state of a reader: the last banner, its table, and incomplete results."""

    options: Options
    report: Callable[[int, str], None]
    kind: str = ""
    family: str = "ipv4"
    banner: int = 0
    """The line of the last banner while no result of its test has been read, else 0."""
    skipped: bool = False
    """Whether the test of the last banner cannot be read; the error is reported already."""
    table: Table = field(default_factory=Table)
    columns: list[str] = field(default_factory=list)
    chosen: dict[str, str] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    """Names of the `name=value` lines that precede the present ones without another line between them."""
    sent: dict[str, str] = field(default_factory=dict)
    """The sent part of a UDP stream: the row of the received part follows."""

    def feed(self, line: int, content: str) -> _Sample | None:
        """Return the sample that a line completes. Raises ToolError for a line that netperf does not print, and for an
        unknown test; the lines after it are skipped until the next banner.
        """
        try:
            return self._feed(line, content)
        except ToolError:
            self.skipped, self.chosen, self.sent, self.banner = bool(self.kind), {}, {}, 0
            raise

    def end(self) -> None:
        """Report the last test if it has no result."""
        if self.banner:
            self.report(self.banner, f"this {self.kind} test has no result")

    def _feed(self, line: int, content: str) -> _Sample | None:
        found = _FIELD.fullmatch(content)
        if found and found[1] not in self.chosen and not self.skipped:
            if not self.chosen:
                self.table.refuse_text()
            self.chosen[found[1]] = found[2]
            return None
        # Another line, or a repeated name, ends the list of `name=value` lines.
        chosen, self.chosen = self.chosen, {found[1]: found[2]} if found and not self.skipped else {}
        before, self.names = self.names, set(chosen) if found else set()
        if chosen:
            if before and before != set(chosen):
                raise ToolError("has other names than the result before it: print a line between two calls")
            sample = self._chosen(chosen)
            if not found:
                self._line(line, content)
            return sample
        return None if found else self._line(line, content)

    def _line(self, line: int, content: str) -> _Sample | None:
        if banner := _BANNER.match(content):
            family = _FAMILY.search(content, banner.end())
            self._begin(line, banner[1], family.group() if family else "AF_INET")
        elif self.skipped or not content.strip() or _ASIDE.fullmatch(content.strip()):
            return None
        elif "," in content:
            try:
                return self._comma(next(csv.reader([content])))
            except csv.Error as error:
                raise ToolError(f"is not CSV: {error}") from None
        elif not self.kind:
            raise ToolError(f"netperf prints no such line: {content.strip()[:60]!r}")
        elif is_row(content):
            return self._row(content)
        else:
            self.table.add(content)
        return None

    def _begin(self, line: int, test: str, family: str) -> None:
        self.end()
        self.kind, self.family = test, _FAMILIES.get(family, "")
        self.banner, self.skipped, self.table, self.columns, self.sent = line, False, Table(), [], {}
        if not self.family and not self.options.test:
            raise ToolError(f"{family} is neither IPv4 nor IPv6: name the test with --test")
        if self.kind not in _MEASURES and not self.kind.startswith("OMNI") and not self.options.test:
            raise ToolError(
                f"{self.kind!r} is not a known test, so its results were left out: name it with --test, or remove it"
            )

    def _chosen(self, chosen: Mapping[str, str]) -> _Sample:
        self.banner = 0
        self._check_kind(chosen)
        named = _COMMAND_TEST.search(chosen.get("COMMAND_LINE", ""))
        kind = named[1] if named and self.kind not in _MEASURES else self.kind
        elapsed = chosen.get("ELAPSED_TIME", "")
        seconds = number(elapsed, "ELAPSED_TIME") if elapsed else 0.0
        number(chosen.get("THROUGHPUT", ""), "THROUGHPUT")
        if "THROUGHPUT_UNITS" not in chosen and _MEASURES.get(kind) in _TRANSACTIONS:
            chosen = {**chosen, "THROUGHPUT_UNITS": "Trans/s"}
        return _Sample(
            self._test(kind), tuple(netperf.values(chosen)), seconds, chosen.get("COMMAND_LINE", "").strip('"')
        )

    def _comma(self, cells: Sequence[str]) -> _Sample | None:
        """A row of -o: headings first, then the values of each call."""
        names = [HEADINGS.get(cell.strip(), cell.strip()) for cell in cells]
        if "THROUGHPUT" in names:
            read = [name for name in names if name in _READ]
            if len(set(read)) < len(read):
                raise ToolError("a heading occurs twice")
            self.table.refuse_text()
            self.columns = names
            return None
        if not self.columns:
            if self.table.heading:
                raise ToolError("a comma in a row of numbers: write decimal points (LC_ALL=C netperf)")
            raise ToolError("values without headings: let netperf print them (leave out -P 0)")
        return self._chosen(by_heading(self.columns, cells))

    def _row(self, content: str) -> _Sample | None:
        """A row of a table; a UDP stream has two: the sent part, then the received part, which counts."""
        cells = self.table.cells(content)
        if SENT in cells:
            self.sent = cells
            return None
        if not cells:
            return None
        self._check_transactions(cells)
        sample, sent, self.sent = self._chosen(cells), self.sent, {}
        if not sent:
            return sample
        rate = _checked_datagrams(sent, cells)
        return replace(sample, values=(*sample.values, Value("throughput.sender", rate, "bits/s", "higher")))

    def _check_kind(self, chosen: Mapping[str, str]) -> None:
        """Raise ToolError for a result that is of another kind than the test of its banner."""
        measure = _MEASURES.get(self.kind)
        if measure is None:
            return
        kind = _KINDS.get(measure, "streams")
        if chosen.get(KIND, kind) != kind or (chosen.get("THROUGHPUT_UNITS") == "Trans/s" and kind != "transactions"):
            raise ToolError(f"the result is not that of a {self.kind} test, which the banner above it names")

    def _check_transactions(self, cells: Mapping[str, str]) -> None:
        """Refuse a rate of less than one transaction in the whole test: with -f netperf 2.7.0 prints bits per second in
        the column “Trans. Rate per sec” of TCP_CRR. Raises ToolError.
        """
        if cells.get("THROUGHPUT_UNITS") != "Trans/s" or "ELAPSED_TIME" not in cells:
            return
        rate, seconds = number(cells["THROUGHPUT"], "THROUGHPUT"), number(cells["ELAPSED_TIME"], "ELAPSED_TIME")
        if rate * (seconds + netperf.ROUNDED_SECONDS) < 1:
            raise ToolError(
                f"{rate:g} transactions/s in {seconds:g} s are less than one: with -f netperf prints bits in this "
                "column, so leave out -f"
            )

    def _test(self, kind: str) -> str:
        if not self.options.test and kind not in _MEASURES:
            raise ToolError("the output does not name the test: set --test, such as tcp.rr/host-host/ipv4")
        return self.options.test_name(_MEASURES.get(kind, ""), self.family)


def _checked_datagrams(sent: Mapping[str, str], received: Mapping[str, str]) -> float:
    """Return the sender's bits/s of a UDP stream, from its two rows.

    Raises ToolError for rates that are not those of their datagrams and time, and if more was received than sent.
    """
    left, came = number(sent[LEFT], "Messages Okay"), number(received[CAME], "Messages Okay")
    if came > left:
        raise ToolError(f"{came:g} datagrams were received, but {left:g} were sent, which cannot be")
    unit, size = netperf.bits(sent["THROUGHPUT_UNITS"]), number(sent[SIZE], "Message Size")
    rows = (
        (left, number(sent[SENT], "Throughput"), sent),
        (came, number(received["THROUGHPUT"], "Throughput"), received),
    )
    totals = list[float]()
    for count, rate, cells in rows:
        seconds = positive(cells["ELAPSED_TIME"], "ELAPSED_TIME")
        exact, total, allowed = 8 * count * size, rate * unit * seconds, _ROUNDING + netperf.ROUNDED_SECONDS / seconds
        if abs(total - exact) > allowed * max(total, exact) + _LAST_DIGIT * unit * seconds:
            raise ToolError(
                f"Throughput is {rate:g}, but {count:g} datagrams of {size:g} bytes in {seconds:g} s are others, which "
                "cannot be"
            )
        totals.append(total)
    if totals[1] > totals[0] * (1 + _ROUNDING):
        raise ToolError("the received Throughput is above the sent one, which cannot be")
    return rows[0][1] * unit


def read(paths: Sequence[str], options: Options, files: Files) -> Iterator[Record]:
    """Yield a record for each call of netperf, with all its output since the previous one."""
    for variant, boot, path, text in data_sets(paths, files):
        yield from files.isolated(path, _file(variant, boot, path, text, options, files))


def _file(variant: str, boot: str, path: Path, text: str, options: Options, files: Files) -> Iterator[Record]:
    reader = _Reader(options, lambda line, reason: files.report.add(path, line, reason))
    kept, count = list[str](), 0
    found: Record | None = None
    # A blank line at the end completes the list of `name=value` lines.
    for line, content in [*lines(text), (text.count("\n") + 1, "")]:
        kept.append(f"{content}\n")
        try:
            sample = reader.feed(line, content)
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
    reader.end()
    if found:
        yield replace(found, output=found.output + "".join(kept))
    elif not files.report.problems:
        files.report.add(path, 0, "has no result of netperf")
