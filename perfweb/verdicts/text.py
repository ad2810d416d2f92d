# SPDX-License-Identifier: BSD-2-Clause
"""A comparison as plain text, for terminals and mails."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from perfweb.lab.origins import Origin
from perfweb.runs.judging import counted_samples
from perfweb.runs.models import Run
from perfweb.stats.student import DEFAULT_CONFIDENCE
from perfweb.verdicts.comparisons import TestComparison, tally
from perfweb.verdicts.doubts import run_pairs
from perfweb.verdicts.functions import lines, loads_of
from perfweb.verdicts.numbers import THIN_SPACE
from perfweb.verdicts.wording import DOUBT, cell_words, difference_words

WIDTH = 132
"""Columns of a wide terminal, at which sentences are wrapped."""


def run_text(run: Run, confidence: float = DEFAULT_CONFIDENCE) -> str:
    """Return a run's comparisons of its baseline with every other variant: a sentence and a table for each.

    Raises ValueError for a confidence level that ministat does not have.
    """
    counted = counted_samples([run])[run.pk]
    mark = Origin(run.testbed.origin).after_comma
    parts = [f"Run {run.pk}: {run.plan.title} ({run.get_state_display()}{mark})"]
    parts += [
        comparison_text(pair.a.name, pair.b.name, confidence, pair.compared)
        for pair in run_pairs(run, counted, confidence)
    ]
    return "\n\n".join(parts) + "\n"


def comparison_text(a: str, b: str, confidence: float, compared: Sequence[TestComparison]) -> str:
    """Return a sentence and a table about side `b` against side `a`, and the functions that differ if counted."""
    loads = loads_of(compared)
    terms = "counted by function" if loads else f"{confidence:g} % confidence"
    parts = [f"{b} against {a}, {terms}: {tally(compared)}", _table(compared), "\n".join(lines(loads))]
    return "\n\n".join(filter(None, parts))


def _table(compared: Sequence[TestComparison]) -> str:
    if not compared:
        return "No test has been measured."
    head = ("test", compared[0].a, compared[0].b, "unit", "difference", "verdict")
    rows = [head, *(_row(comparison) for comparison in compared)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    notes = [
        f"{comparison.test}: {comparison.words}".replace(THIN_SPACE, " ")
        for comparison in compared
        if comparison.result.lack
    ]
    if any(comparison.lean is not None for comparison in compared):
        notes += textwrap.wrap(DOUBT, WIDTH)
    return "\n".join([_line(row, widths) for row in rows] + [""] * bool(notes) + notes)


def _row(comparison: TestComparison) -> tuple[str, ...]:
    result, scale = comparison.result, comparison.scale
    cells = (
        comparison.test,
        *(scale.text(summary.mean if summary else None) for summary in (result.a, result.b)),
        scale.unit,
        difference_words(result),
        cell_words(comparison),
    )
    return tuple(cell.replace(THIN_SPACE, " ") for cell in cells)


def _line(cells: tuple[str, ...], widths: list[int]) -> str:
    """Join cells in columns; the means, in the second and third, are flush right."""
    places = enumerate(zip(cells, widths, strict=True))
    padded = [cell.rjust(width) if place in {1, 2} else cell.ljust(width) for place, (cell, width) in places]
    return "  ".join(padded).rstrip()
