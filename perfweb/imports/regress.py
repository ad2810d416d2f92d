# SPDX-License-Identifier: BSD-2-Clause
"""Result folders of OpenBSD's regress and perform tests: `test.result` files below folders named by timestamps.

    [RELEASE/]RUN-DATE/[CHECKOUT-DATE/][patch-NAME.N/][modify-NAME.N/][REPEAT/]test.result

Lines `VALUE number unit name` precede the line `STATUS test message` to which they belong; `logs/TEST.log` beside the
file is the tool's output.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from perfweb.imports.records import Files, Options, Record, lines, moment, number, slug
from perfweb.measuring.tools import ToolError, Value

_DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
_VARIANT = re.compile(r"(?:patch|modify)-.+")
_REPEAT = re.compile(r"\d{1,6}", re.ASCII)
_STATUS = re.compile(r"[A-Z]{4,10}", re.ASCII)
_GOOD = "PASS"
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}|[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){2,7}", re.ASCII)
_LENGTH = re.compile(r"-t\d+", re.ASCII)
_UNITS = {"bits/sec": ("throughput", "bits/s"), "packets/sec": ("packets", "packets/s"), "sec": ("time", "s")}
MOST_DEPTH = 8


@dataclass(frozen=True)
class _Place:
    """Variables in the names of the folders above a test.result."""

    run: str
    checkout: str
    variant: str
    repeat: str


def read(paths: Sequence[str], options: Options, files: Files) -> Iterator[Record]:
    """Yield a record for each test in each test.result below the paths; each checkout is a run of its own."""
    found: list[tuple[Path, _Place]] = []
    for argument in paths:
        results = sorted(files.isolated(Path(argument), _results(Path(argument), 0)))
        if not results:
            files.report.add(Path(argument), 0, "has no test.result in it or below")
        for path in results:
            place = _place(path)
            if place.checkout:
                found.append((path, place))
            else:
                files.report.add(path, 0, "is below no folder named by a date such as 2026-11-21T00:00:00Z")
    read_tests = [(path, place, list(files.isolated(path, _tests(path, files)))) for path, place in found]
    names = _names({test for _, _, tests in read_tests for _, test, *_ in tests}, options.topology)
    for path, place, tests in sorted(read_tests, key=lambda entry: (entry[1].checkout, entry[1].run, entry[0])):
        started = _moment(place.run, path, files)
        for line, test, values, problem in tests:
            yield Record(
                path, line, place.variant, f"{place.run} {place.repeat}", names[test], values, problem,
                tool=test.partition("_")[0], command=test.replace("_", " "), revision=place.checkout,
                committed=_moment(place.checkout, path, files), started=started,
                output=_log_text(path, test, files),
            )  # fmt: skip


def _log_text(path: Path, test: str, files: Files) -> str:
    """Return the tool's output, empty if no such file can exist; its name comes from the results."""
    log = path.parent / "logs" / f"{test}.log"
    try:
        there = "/" not in test and log.is_file()
    except OSError:  # the name is too long for a file
        there = False
    return (files.text(log, exact=False) or "") if there else ""


def _results(folder: Path, depth: int) -> Iterator[Path]:
    """Return the test.result files below a folder, without symbolic links (latest, current), which would repeat
    some.
    """
    if folder.is_file() and folder.name == "test.result":
        yield folder
    elif folder.is_dir() and depth < MOST_DEPTH:
        for entry in sorted(folder.iterdir()):
            if not entry.is_symlink() and (entry.is_dir() or entry.name == "test.result"):
                yield from _results(entry, depth + 1)


def _place(path: Path) -> _Place:
    parts = path.absolute().parts[:-1]
    dates = [part for part in parts if _DATE.fullmatch(part)]
    variant = "_".join(part for part in parts if _VARIANT.fullmatch(part))
    repeat = parts[-1] if _REPEAT.fullmatch(parts[-1]) else "0"
    run = dates[-2] if len(dates) > 1 else dates[-1] if dates else ""
    return _Place(run, dates[-1] if dates else "", slug(variant) or "base", repeat)


def _moment(text: str, path: Path, files: Files) -> datetime | None:
    try:
        return moment(text)
    except ValueError as error:
        files.report.add(path, 0, str(error))
        return None


def _tests(path: Path, files: Files) -> Iterator[tuple[int, str, tuple[Value, ...], str]]:
    """Yield line, test, values and the reason of a failure, for each line with a status."""
    text = files.text(path)
    pending: list[Value] = []
    seen: set[str] = set()
    for line, content in lines(text or ""):
        words = content.split(maxsplit=3)
        try:
            if not words or words[0] == "SUBVALUE":
                continue
            if words[0] == "VALUE":
                pending.append(_value(words))
                continue
            test, problem = _status(content)
        except ToolError as error:
            files.report.add(path, line, str(error))
            continue
        values, pending = tuple(_primary_first(pending)), []
        if test in seen:
            files.report.add(path, line, f"the test {test[:80]!r} has a result already")
        elif not values and not problem:
            files.report.add(path, line, f"the test {test[:80]!r} passed without a VALUE line before it")
        else:
            yield line, test, values, problem
        seen.add(test)
    if pending:
        files.report.add(path, text.count("\n") + 1 if text else 0, "ends in VALUE lines without the test they are of")
    if text is not None and not seen:
        files.report.add(path, 0, "has no result of a test")


def _value(words: Sequence[str]) -> Value:
    """Parse `VALUE number unit name`, whose name may be missing."""
    if len(words) < 3:
        raise ToolError("a VALUE line has a number, a unit and a name")
    kind, unit = _UNITS.get(words[2], (re.sub(r"[^A-Za-z0-9._-]", ".", words[2]), words[2]))
    name = re.sub(r"[^A-Za-z0-9._-]", ".", words[3].strip())[:20] if len(words) > 3 else ""
    direction = "lower" if unit == "s" else "higher"
    return Value(f"{kind}.{name}" if name else kind, number(words[1], "VALUE"), unit, direction)


def _primary_first(values: Sequence[Value]) -> list[Value]:
    """Return the receiver's value or, without one, the last: sent data need not have arrived."""
    primary = next((value for value in values if value.metric.endswith(".receiver")), values[-1] if values else None)
    return [] if primary is None else [primary, *(value for value in values if value is not primary)]


def _status(content: str) -> tuple[str, str]:
    """Return the test of a line `STATUS test message`, and the reason of its failure."""
    status, _, rest = content.replace("\t", " ").partition(" ")
    test, _, message = rest.strip().partition(" ")
    if not _STATUS.fullmatch(status) or not test:
        raise ToolError(f"is neither a VALUE nor a result of a test: {content[:60]!r}")
    return test, "" if status == _GOOD else f"{status} {message.strip()}".strip()


def _names(tests: set[str], topology: str) -> dict[str, str]:
    """Name tests by their options and not by addresses, which change; tests that differ only in addresses keep them."""
    plain = {test: _name(test, topology, keep=False) for test in tests}
    counts = Counter(plain.values())
    return {test: name if counts[name] == 1 else _name(test, topology, keep=True) for test, name in plain.items()}


def _name(test: str, topology: str, *, keep: bool) -> str:
    """Return `iperf3_-c10.3.45.35_-w1m_-t10_-R` as iperf3.w1m.R; the duration of a test is not part of its name."""
    six = "-6" in test.split("_") or any(":" in found[0] for found in _ADDRESS.finditer(test))
    words = []
    for word in test.split("_"):
        bare = word if keep else _ADDRESS.sub("", word)
        if _LENGTH.fullmatch(word) or (bare != word and len(bare) <= 2 and bare.startswith("-")):
            continue
        words.append(re.sub(r"[^A-Za-z0-9-]+", "-", bare).strip("-"))
    return f"{'.'.join(filter(None, words))}/{topology}/{'ipv6' if six else 'ipv4'}"
