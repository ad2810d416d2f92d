# SPDX-License-Identifier: BSD-2-Clause
"""Results of published experiments that the documentation has: tables that `./dev bench` measured and wrote."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from perfweb.manual.documents import documents
from perfweb.verdicts.numbers import LARGE_PERCENT, MINUS, THIN_SPACE, interval, percent

TABLES = (("measured/knobs", "Published comparisons"), ("measured/simulator", "Published results"))
"""Documents, and their sections with such a table."""

HERE = {"here, %": "measured", "simulated, %": "simulated"}
"""The column of our own values, and how they were obtained."""


@dataclass(frozen=True)
class Recorded:
    """What was compared, the published change, ours, how it was obtained, and whether the signs are equal."""

    title: str
    published: str
    here: str
    kind: str
    sign: str
    document: str
    anchor: str


def recorded(year: int) -> list[Recorded]:
    """Return the recorded results of the experiment of a year."""
    return [one for document, heading in TABLES for one in _table(document, heading) if f"{year})" in one.published]


def _table(document: str, heading: str) -> Iterator[Recorded]:
    text = documents()[document].text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line.strip("| ") for line in text.splitlines() if line.startswith("|")]
    # The first heading is empty, so stripping the line removes its cell.
    head = ["", *(cell.strip() for cell in lines[0].split("|"))]
    for line in lines[2:]:
        cells = dict(zip(head, (cell.replace("*", "").strip() for cell in line.split("|")), strict=True))
        ((column, kind),) = ((column, kind) for column, kind in HERE.items() if column in cells)
        machine = f" ({cells['machine']})" if "machine" in cells else ""
        anchor = heading.lower().replace(" ", "-")
        here = _change(cells[column])
        yield Recorded(cells[""] + machine, cells["published"], here, kind, cells["sign"], document, anchor)


def _change(cell: str) -> str:
    """Write a change as the pages do, with the digits of the table: "+71.6 (+68.4 to +74.9)" is in percent."""
    change, *ends = map(float, cell.replace("(", " ").replace(" to ", " ").replace(")", " ").split())
    if change >= LARGE_PERCENT:
        return interval(change, *ends) if ends else percent(change, signed=True)
    first, blank, rest = cell.partition(" ")
    return f"{first}{THIN_SPACE}%{blank}{rest}".replace("-", MINUS)
