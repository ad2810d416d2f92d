# SPDX-License-Identifier: BSD-2-Clause
"""Tables: CSV with a heading, one sample on a line; a mapping assigns the columns."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path

from perfweb.imports.records import Files, Options, Record, moment, number
from perfweb.measuring.tools import ToolError

FIELDS = ("value", "test", "variant", "boot", "revision", "date", "testbed", "unit")
"""The possible columns; only `value` is required. A column with such a name has that meaning, unless it is mapped
otherwise.
"""


def read(paths: Sequence[str], options: Options, files: Files) -> Iterator[Record]:
    """Yield a record for each line of each table."""
    units: dict[str, str] = {}
    for argument in paths:
        path = Path(argument)
        if (text := files.text(path)) is not None:
            yield from files.isolated(path, _table(path, text, units, options, files))


def _table(path: Path, text: str, units: dict[str, str], options: Options, files: Files) -> Iterator[Record]:
    rows = csv.reader(StringIO(text, newline=""), strict=True)
    try:
        heading = [name.strip() for name in next(rows, [])]
        columns = _columns(heading, options, path, files)
        if columns is None:
            return
        counts: dict[tuple[str, ...], int] = {}
        for row in rows:
            if not any(cell.strip() for cell in row):
                continue
            if len(row) != len(heading):
                files.report.add(path, rows.line_num, f"has {len(row)} cells; the heading has {len(heading)}")
            elif record := _record(path, rows.line_num, row, columns, units, options, files):
                key = record.testbed, record.revision, record.variant, record.test, record.boot
                counts[key] = count = counts.get(key, 0) + 1
                yield _finished(record, heading, row, count, options)
        if not counts and not files.report.problems:
            files.report.add(path, 0, "has no line below the heading")
    except csv.Error as error:
        files.report.add(path, rows.line_num, f"is not CSV: {error}")


def _columns(heading: Sequence[str], options: Options, path: Path, files: Files) -> dict[str, int] | None:
    """Return the position of each field in the table; None after reporting a problem of the heading."""
    chosen = options.columns
    before = len(files.report.problems)
    there = f"its columns are: {', '.join(heading) or 'none'}"[:300]
    if len(set(heading)) < len(heading):
        twice = next(name for name, count in Counter(heading).items() if count > 1)
        files.report.add(path, 1, f"has the column {twice!r} twice")
    for name, column in chosen.items():
        if name not in FIELDS:
            files.report.add(path, 1, f"{name!r} is no field of a sample: map {', '.join(FIELDS)}")
        elif column not in heading:
            files.report.add(path, 1, f"has no column {column!r}; {there}")
    own = {name: name for name in FIELDS if name not in chosen.values() and not (name == "test" and options.test)}
    columns = {**own, **chosen}
    if columns.get("value") not in heading and "value" not in chosen:
        files.report.add(path, 1, f"has no column value: map one with --column value=NAME; {there}")
    if len(files.report.problems) > before:
        return None
    return {name: heading.index(column) for name, column in columns.items() if column in heading}


def _record(
    path: Path,
    line: int,
    row: Sequence[str],
    columns: Mapping[str, int],
    units: dict[str, str],
    options: Options,
    files: Files,
) -> Record | None:
    """Return the sample of a row, None after reporting a problem; `units` are those of the rows before, by test."""
    cells = {name: row[place].strip() for name, place in columns.items()}
    test, unit = cells.get("test") or options.test, cells.get("unit", "")
    try:
        if (before := units.setdefault(test, unit)) != unit:
            raise ToolError(
                f"is in {unit!r}, and {test or 'the test'} was in {before!r} before: --unit converts nothing"
            )
        value = options.value(number(cells["value"]), options.columns.get("value", "value"), unit)
        committed = moment(cells["date"]) if cells.get("date") else None
    except (ToolError, ValueError) as error:
        files.report.add(path, line, str(error))
        return None
    revision = cells.get("revision", "")
    # A bare number denotes a run everywhere, and Subversion writes its revisions like this, too.
    revision = f"r{revision}" if revision.isdigit() else revision
    return Record(
        path, line, cells.get("variant", "base"), cells.get("boot", ""),
        test, (value,), revision=revision,
        committed=committed, testbed=cells.get("testbed", ""),
    )  # fmt: skip


def _finished(record: Record, heading: Sequence[str], row: Sequence[str], count: int, options: Options) -> Record:
    """Return the record with its boot and its text; the first of a measurement has the heading, too."""

    kept = StringIO()
    csv.writer(kept, lineterminator="\n").writerows([heading, row] if count == 1 else [row])
    boot = f"{record.boot}.{count}" if options.boot_per_sample else record.boot
    return replace(record, boot=boot, output=kept.getvalue())
