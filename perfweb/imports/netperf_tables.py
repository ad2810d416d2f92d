# SPDX-License-Identifier: BSD-2-Clause
"""The tables of netperf: the heading above each number identifies it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from perfweb.measuring.tools import ToolError

HEADINGS = {
    "Throughput": "THROUGHPUT",
    "Throughput Units": "THROUGHPUT_UNITS",
    "Elapsed Time (sec)": "ELAPSED_TIME",
    "Mean Latency Microseconds": "MEAN_LATENCY",
    "Minimum Latency Microseconds": "MIN_LATENCY",
    "50th Percentile Latency Microseconds": "P50_LATENCY",
    "90th Percentile Latency Microseconds": "P90_LATENCY",
    "99th Percentile Latency Microseconds": "P99_LATENCY",
    "Maximum Latency Microseconds": "MAX_LATENCY",
    "Command Line": "COMMAND_LINE",
}
"""The headings of -o and -O for the selectors that are read (netperf's manual, "Omni Output Selectors")."""

SENT = "SENT_THROUGHPUT"
"""The selector of the rate at which a UDP stream was sent; its row precedes that of the receiver."""

SIZE = "MESSAGE_SIZE"
"""The selector of the bytes of a datagram, in the row of the sender."""

LEFT, CAME = "SENT_MESSAGES", "RECEIVED_MESSAGES"
"""The selectors of the numbers of datagrams in these two rows."""

KIND = "KIND"
"""The selector of the kind of a classic table, which has no column: the tests that it belongs to."""

_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?|[+-]?(?:nan|inf)", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True)
class _Classic:
    """A table of a classic test. `heading` matches its words; each of `rows` names the cells of one row, in turn.

    Cells without a name are left out. `extra` is the number of further cells in a row with measured CPU use.
    """

    kind: str
    heading: re.Pattern[str]
    rows: tuple[tuple[str, ...], ...]
    extra: tuple[int, ...]


_STREAM = re.compile(
    r"Recv Send Send(?P<cpu> Utilization Service Demand)? Socket Socket Message Elapsed(?: Send Recv Send Recv)?"
    r" Size Size Size Time Throughput(?: local remote local remote)? bytes bytes bytes secs\.? (?P<unit>[^ ]{1,20})"
    r"(?: % [A-Z]{1,3} % [A-Z]{1,3} us/KB us/KB)?",
    re.ASCII | re.IGNORECASE,
)
_TRANSACTIONS = re.compile(
    r"Local /Remote Socket Size Request Resp\. Elapsed(?: Trans\.)?(?P<cpu> CPU CPU S\.dem S\.dem)?"
    r" Send Recv Size Size Time [a-z]{1,20}(?: local remote local remote)? bytes bytes bytes bytes secs\.?"
    r" (?P<unit>per sec|[^ ]{1,20})(?: % [A-Z]{1,3} % [A-Z]{1,3} us/Tr us/Tr)?",
    re.ASCII | re.IGNORECASE,
)
_DATAGRAMS = re.compile(
    r"Socket Message Elapsed Messages(?P<cpu> CPU Service)? Size Size Time Okay Errors Throughput(?: Util Demand)?"
    r" bytes bytes secs\.? # # (?P<unit>[^ ]{1,20})(?: % [A-Z]{1,3} us/KB)?",
    re.ASCII | re.IGNORECASE,
)
_CLASSIC = (
    _Classic("streams", _STREAM, (("", "", "", "ELAPSED_TIME", "THROUGHPUT"),), (4,)),
    _Classic("transactions", _TRANSACTIONS, (("", "", "", "", "ELAPSED_TIME", "THROUGHPUT"), ("", "")), (4, 0)),
    _Classic(
        "datagrams",
        _DATAGRAMS,
        (("", SIZE, "ELAPSED_TIME", LEFT, "", SENT), ("", "ELAPSED_TIME", CAME, "THROUGHPUT")),
        (2, 2),
    ),
)
_WITHOUT_RESULT = ("Alignment Offset ", "Maximum Segment Size ")
"""The beginnings of the tables that -v 2 appends: alignment of buffers with counts of calls, and the segment size."""


@dataclass
class Table:
    """The heading lines so far, and the number of rows below them."""

    heading: list[str] = field(default_factory=list)
    rows: int = 0

    def add(self, line: str) -> None:
        """Read a line of the heading; the first one after a row begins another table."""
        if self.rows:
            self.heading, self.rows = [], 0
        self.heading.append(line.rstrip())

    def refuse_text(self) -> None:
        """Raise ToolError if lines that are no heading of a row precede another kind of result."""
        if self.heading and not self.rows:
            raise ToolError(f"netperf prints no such line before a result: {self.heading[0].strip()[:60]!r}")

    def cells(self, line: str) -> dict[str, str]:
        """Return the cells of a row by their selectors, with THROUGHPUT_UNITS if the heading has it.

        Empty for a row without a result, such as the second of a request/response test.
        Raises ToolError for a row below no heading, or one that does not fit it.
        """
        if not self.heading:
            raise ToolError("a row of numbers without headings: let netperf print them (leave out -P 0)")
        words = " ".join(" ".join(self.heading).split())
        self.rows += 1
        if words.startswith(_WITHOUT_RESULT):
            return {}
        for classic in _CLASSIC:
            if found := classic.heading.fullmatch(words):
                return self._classic(classic, found, line.split())
        return self._aligned(line)

    def _classic(self, classic: _Classic, found: re.Match[str], cells: Sequence[str]) -> dict[str, str]:
        place = (self.rows - 1) % len(classic.rows)
        names = classic.rows[place]
        wanted = len(names) + (classic.extra[place] if found["cpu"] else 0)
        if len(cells) != wanted:
            raise ToolError(f"{len(cells)} numbers below a heading of {wanted} columns")
        unit = "Trans/s" if found["unit"].lower() == "per sec" else found["unit"]
        named = {name: cell for name, cell in zip(names, cells[: len(names)], strict=True) if name}
        return {**named, "THROUGHPUT_UNITS": unit, KIND: classic.kind} if named else {}

    def _aligned(self, line: str) -> dict[str, str]:
        """Split a row of -O: each column begins where its cell begins, and its heading is above it."""
        starts = [match.start() for match in re.finditer(r"\S+", line)]
        ends = [*starts[1:], max(map(len, [line, *self.heading]))]
        for text in self.heading:
            if any(0 < start < len(text) and not text[start - 1].isspace() for start in starts):
                raise ToolError(
                    f"the columns below {self.heading[0].strip()[:60]!r} are not aligned with their headings"
                )
        names = [
            " ".join(" ".join(text[start:end].strip() for text in self.heading).split())
            for start, end in zip(starts, ends, strict=True)
        ]
        named = [
            (HEADINGS[name], line[start:end].strip())
            for name, start, end in zip(names, starts, ends, strict=True)
            if name in HEADINGS
        ]
        if len({name for name, _ in named}) < len(named):
            raise ToolError("a heading occurs twice")
        if "THROUGHPUT" not in dict(named):
            raise ToolError(f"no column is called Throughput; they are {', '.join(filter(None, names))[:200]}")
        return dict(named)


def is_row(line: str) -> bool:
    """Return whether a line is a row of a table, which begins with a number."""
    first = line.split(maxsplit=1)[:1]
    return bool(first) and _NUMBER.fullmatch(first[0]) is not None


def by_heading(headings: Sequence[str], cells: Sequence[str]) -> Mapping[str, str]:
    """Return the values of a row of -o by their selectors. Raises ToolError if headings and values do not match."""
    if len(cells) != len(headings):
        raise ToolError(f"{len(cells)} values below {len(headings)} headings")
    return dict(zip(headings, cells, strict=True))
