# SPDX-License-Identifier: BSD-2-Clause
"""Files in the format of ministat(1): numbers, one sample on a line, each file a data set."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from perfweb.imports.records import Files, Options, Record, data_sets, lines, number
from perfweb.measuring.tools import ToolError

_WORD = re.compile(r"[^ \t]+")
"""As ministat(1) separates columns; other blanks may be within a number, such as in 12\u202f345."""


def read(paths: Sequence[str], options: Options, files: Files) -> Iterator[Record]:
    """Yield a record for each line. Text from `#` on and blank lines are left out; `column` counts from 1."""
    for variant, boot, path, text in data_sets(paths, files):
        yield from files.isolated(path, _file(variant, boot, path, text, options, files))


def _file(variant: str, boot: str, path: Path, text: str, options: Options, files: Files) -> Iterator[Record]:
    column = options.columns.get("value", "1")
    place = int(column) if column.isascii() and column.isdigit() else 0
    if not place:
        files.report.add(path, 0, f"--column {column} is no number of a column: they count from 1")
        return
    before = 0
    for line, content in lines(text):
        words = _WORD.findall(content.partition("#")[0])
        if not words:
            continue
        before += 1
        sample_boot = f"{boot}.{before}" if options.boot_per_sample else boot
        if len(words) < place:
            files.report.add(path, line, f"has {len(words)} columns, but column {place} is selected")
            continue
        try:
            value = options.value(number(words[place - 1], f"column {place}"))
        except ToolError as error:
            files.report.add(path, line, str(error))
            continue
        yield Record(path, line, variant, sample_boot, options.test, (value,), output=f"{content}\n")
    if not before:
        files.report.add(path, 0, "has no numbers")
