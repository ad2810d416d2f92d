# SPDX-License-Identifier: BSD-2-Clause
"""Records of an import before they become runs: one for each sample, and all errors."""

from __future__ import annotations

import codecs
import hashlib
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from perfweb.lab.origins import Origin, origin_of
from perfweb.measuring.tools import Value, positive, stalled

log = logging.getLogger(__name__)
T = TypeVar("T")

MOST_BYTES = 64 * 2**20
"""Limit for all files of an import together, because they are held in memory."""

MOST_FILES = 20_000
MOST_RECORDS = 500_000
MOST_PROBLEMS = 1000

SMALLEST, LARGEST = 1e-12, 1e18
"""The range of values with which statistics do not lose all digits, in any unit."""

LONGEST_TEST = 64
_TEST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(?:/[A-Za-z0-9][A-Za-z0-9._-]*)*", re.ASCII)
_LINE_END = re.compile(r"\r\n|[\r\n\x85]")
_METRIC = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}", re.ASCII)
# For times less is better; for all other units more is better.
_TIMES = frozenset({"s", "sec", "secs", "second", "seconds", "ms", "us", "µs", "ns"})


@dataclass(frozen=True, slots=True)
class Problem:
    """An error in a line of a file, or in the whole file if `line` is 0."""

    path: Path
    line: int
    reason: str

    def __str__(self) -> str:
        where = f"{self.path}, line {self.line}" if self.line else str(self.path)
        return f"{where}: {self.reason}"


class ImportProblemsError(ValueError):
    """The files cannot be imported; `problems` are all that were found."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = list(problems)


@dataclass
class Report:
    """Collects errors, so that all are reported at once."""

    problems: list[Problem] = field(default_factory=list)

    def add(self, path: Path, line: int, reason: str) -> None:
        """Store a problem. Raises ImportProblemsError at the max number of problems."""
        self.problems.append(Problem(path, line, reason))
        if len(self.problems) >= MOST_PROBLEMS:
            raise ImportProblemsError([*self.problems, Problem(path, 0, "and maybe more: reading stopped here")])

    def settle(self) -> None:
        """Raise ImportProblemsError if there is any problem."""
        if self.problems:
            raise ImportProblemsError(self.problems)


@dataclass(frozen=True, slots=True)
class Record:
    """One sample of a test on a boot of a variant: the result of one call of a tool, with its place in the file.

    The first of `values` is the compared one. `problem` is the reason of a failed measurement, whose values enter no
    statistics. `revision`, `committed` (time of that revision) and `testbed` distinguish runs; empty ones are those of
    the whole import. `output` is stored as the output of the tool. `seconds` is the tool's run time, 0 if unknown.
    `seed` is that of the boot, if nothing else differs between its boots.
    """

    path: Path
    line: int
    variant: str
    boot: str
    test: str
    values: tuple[Value, ...]
    problem: str = ""
    seconds: float = 0.0
    tool: str = ""
    command: str = ""
    output: str = ""
    revision: str = ""
    committed: datetime | None = None
    started: datetime | None = None
    testbed: str = ""
    origin: Origin = Origin.MEASURED
    seed: int | None = None

    @property
    def void(self) -> str:
        """Return why the sample's own numbers show a disturbance, or an empty text."""
        return stalled(self.values)


@dataclass(frozen=True)
class Options:
    """Options for reading files, and values that the files do not have.

    `columns` maps a field of a table to its column; `boot_per_sample` means that each sample was taken on a boot of its
    own. `test` is a full name, or empty if the files name it; then `topology` completes it.
    """

    plan: str
    title: str = ""
    origin: str = ""
    testbed: str = "imported"
    revision: str = ""
    committed: datetime | None = None
    test: str = ""
    topology: str = "host-host"
    metric: str = ""
    unit: str = ""
    direction: str = ""
    baseline: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    boot_per_sample: bool = False

    def value(self, number: float, metric: str = "", unit: str = "") -> Value:
        """Return a value with the requested metric, unit and direction, else with the given or usual ones."""
        unit = self.unit or unit
        return Value(self.metric or metric or "value", number, unit, self.direction or direction_of(unit))

    def test_name(self, measure: str, family: str) -> str:
        """Return the requested name, else that of a measure."""
        return self.test or f"{measure}/{self.topology}/{family}"


class Files:
    """Reads texts, and computes the SHA-256 of all of them."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.bytes = 0
        self._sums: list[str] = []

    @property
    def sha256(self) -> str:
        """Return the sum of a single file like sha256sum(1), or the sum of the sums and names of several."""
        if len(self._sums) == 1:
            return self._sums[0].partition(" ")[0]
        return hashlib.sha256("".join(self._sums).encode()).hexdigest()

    def text(self, path: Path, *, exact: bool = True) -> str | None:
        """Return the text of a file, None after reporting why there is none.

        It is UTF-8, with or without byte order mark, or UTF-16 with one. All line ends become line feeds: CR, LF, CR
        LF, and NEL (ISO 6429). With `exact` a byte that is invalid in its encoding is a problem, else it is replaced.
        """
        try:
            if not path.is_file():
                self.report.add(path, 0, "is no file" if path.exists() else "does not exist")
                return None
            if len(self._sums) >= MOST_FILES or self.bytes + path.stat().st_size > MOST_BYTES:
                most = f"{MOST_FILES} files or {MOST_BYTES // 2**20} MiB"
                raise ImportProblemsError([*self.report.problems, Problem(path, 0, f"is beyond {most}: import less")])
            content = path.read_bytes()
        except OSError as error:
            self.report.add(path, 0, f"cannot be read: {error.strerror}")
            return None
        self.bytes += len(content)
        self._sums.append(f"{hashlib.sha256(content).hexdigest()}  {path.name!r}\n")
        text = self._decoded(path, content) if exact else content.decode("utf-8", "replace")
        return None if text is None else _LINE_END.sub("\n", text)

    def isolated(self, path: Path, found: Iterator[T]) -> Iterator[T]:
        """Yield the results of a parser for a file; any exception is a problem of this file alone."""
        try:
            yield from found
        except ImportProblemsError:
            raise
        except Exception as error:
            log.exception("%s cannot be parsed", path)
            self.report.add(path, 0, f"cannot be parsed: {type(error).__name__}: {str(error)[:200]}")

    def members(self, folder: Path) -> list[Path]:
        """Return the visible entries of a folder, sorted; none after reporting why it cannot be read."""
        try:
            return sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
        except OSError as error:
            self.report.add(folder, 0, f"cannot be read: {error.strerror}")
            return []

    def _decoded(self, path: Path, content: bytes) -> str | None:
        encoding = "utf-16" if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError as error:
            line = len(_LINE_END.findall(content[: error.start].decode(encoding, "replace"))) + 1
            name = encoding.removesuffix("-sig").upper()
            self.report.add(path, line, f"is not {name}: it has the byte 0x{content[error.start]:02x}")
            return None
        if "\0" in text:
            line = len(_LINE_END.findall(text, 0, text.index("\0"))) + 1
            self.report.add(path, line, "has a NUL character: save it as text in UTF-8")
            return None
        return text


def data_sets(paths: Sequence[str], files: Files) -> Iterator[tuple[str, str, Path, str]]:
    """Yield variant, boot, path and text of each file of `[NAME=]PATH` arguments.

    An argument is a variant, named after its file or folder unless it has a NAME. A file is one boot; a folder has a
    file for each boot. The same NAME several times adds boots.
    """
    seen: dict[str, bool] = {}
    boots: dict[str, int] = {}
    for argument in paths:
        name, equals, rest = argument.partition("=")
        named = bool(equals) and not Path(argument).exists()
        path = Path(rest if named else argument)
        variant = slug(name if named else path.stem if path.is_file() else path.resolve().name)
        if not (seen.setdefault(variant, named) and named) and variant in boots:
            files.report.add(path, 0, f"would be named {variant!r} like one before: write NAME={path}")
            continue
        members = files.members(path) if path.is_dir() else [path]
        if not members:
            files.report.add(path, 0, "is an empty folder")
        for member in members:
            number = boots[variant] = boots.get(variant, 0) + 1
            if (text := files.text(member)) is not None:
                yield variant, str(number), member, text


def lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield number and content of each line of a text that Files.text() returned."""
    yield from enumerate(text.split("\n"), start=1)


def number(text: str, what: str = "it") -> float:
    """Return a positive number in plain digits; raises ToolError that names `what`."""
    return positive(text.strip(), what)


def slug(text: str) -> str:
    """Return a text as a name for a variant, plan or testbed; empty if it has no letter or digit."""
    return re.sub(r"[^a-z0-9_-]+", "-", text.lower())[:64].strip("-_")


def direction_of(unit: str) -> str:
    """Return the better direction of a number with this unit."""
    return "lower" if unit.lower() in _TIMES else "higher"


def faults(record: Record) -> Iterator[str]:
    """Report why a record cannot be stored, whatever its format was."""
    for name, what in ((record.variant, "variant"), (record.testbed or "given", "testbed")):
        if not slug(name):
            yield f"{name[:40]!r} cannot name a {what}: it takes a letter or a digit"
    if not record.test:
        yield "does not name the test: set --test, such as tcp.rr/host-host/ipv4"
    elif len(record.test) > LONGEST_TEST or not _TEST.fullmatch(record.test) or ".." in record.test:
        yield f"{record.test[:80]!r} cannot name a test: use letters, digits and . _ - between slashes, at most 64"
    elif (origin := origin_of(record.test)) != record.origin:
        given = record.origin.value
        yield f"{record.test[:80]!r} is a name of {origin.value} results: give what was {given} another name"
    if not record.revision.isprintable():
        yield f"the revision {record.revision[:40]!r} has a character that cannot be printed"
    if len(record.revision) > 80:
        yield f"the revision is {len(record.revision)} characters long; the longest has 80"
    if not record.values and not record.problem:
        yield "gives no value"
    yield from _value_faults(record.values, none_counts=record.origin == Origin.COUNTED)


def _value_faults(values: Sequence[Value], *, none_counts: bool) -> Iterator[str]:
    """Report why values cannot be stored; a count can be 0, and a measured value cannot."""
    for value in values:
        if not _METRIC.fullmatch(value.metric):
            yield f"{value.metric[:40]!r} cannot name a metric: use at most 32 letters, digits, . _ and -"
        if len(value.unit) > 24:
            yield f"the unit {value.unit[:40]!r} is longer than 24 characters"
        if not (SMALLEST <= value.value <= LARGEST or (none_counts and value.value == 0)):
            yield f"{value.metric} is {value.value:g}; numbers from {SMALLEST:g} to {LARGEST:g} can be imported"
    if len({value.metric for value in values}) < len(values):
        yield "gives the same metric twice"


def moment(text: str) -> datetime:
    """Return a time in ISO 8601, in UTC if it has no zone; raises ValueError."""
    hint = f"{text[:40]!r} is no time: write 2015-01-04 or 2015-01-04T09:30:00Z, from 1970 to 2100"
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(hint) from None
    if not 1970 <= found.year <= 2100:
        raise ValueError(hint)
    return found if found.tzinfo else found.replace(tzinfo=UTC)
