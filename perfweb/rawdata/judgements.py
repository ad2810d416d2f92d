# SPDX-License-Identifier: BSD-2-Clause
"""Verdicts as a table: the result of each test of a comparison, with its numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from perfweb.rawdata.tables import Column, Kind, Row, Table
from perfweb.stats.summary import Summary
from perfweb.verdicts.comparisons import TestComparison
from perfweb.verdicts.numbers import THIN_SPACE
from perfweb.verdicts.wording import verdict_words

_SUMMARY = (
    ("boots", Kind.INTEGER, "boots that gave samples"),
    ("n", Kind.INTEGER, "number of samples that count"),
    ("mean", Kind.NUMBER, "their mean"),
    ("median", Kind.NUMBER, "their median"),
    ("deviation", Kind.NUMBER, "their sample standard deviation; empty for a single sample"),
    ("minimum", Kind.NUMBER, "their min"),
    ("maximum", Kind.NUMBER, "their max"),
)


def _summary_columns(side: str) -> list[Column]:
    return [Column(f"{side}_{name}", kind, f"{side}: {meaning}") for name, kind, meaning in _SUMMARY]


VERDICT_COLUMNS = (
    Column("test", Kind.TEXT, "name of the test"),
    Column("base", Kind.TEXT, "the side that others are compared with"),
    Column("other", Kind.TEXT, "the side that is compared with it"),
    Column("unit", Kind.TEXT, "unit of means, medians, deviations and extremes"),
    Column("direction", Kind.TEXT, "the better direction: higher or lower"),
    Column("verdict", Kind.TEXT, "failed, slower, faster, not enough data, not judged, equivalent or identical"),
    Column("lack", Kind.TEXT, "the missing condition, if there is not enough data, or no verdict"),
    Column("words", Kind.TEXT, "the verdict as pages have it"),
    Column("confidence", Kind.NUMBER, "in percent"),
    Column("margin", Kind.NUMBER, "of equivalence, in percent"),
    Column("change", Kind.NUMBER, "of the mean from base to other, in percent of base"),
    Column("change_low", Kind.NUMBER, "lower bound of its confidence interval, in percent"),
    Column("change_high", Kind.NUMBER, "upper bound of its confidence interval, in percent"),
    Column("p", Kind.NUMBER, "p-value of no change, before it is adjusted for the number of tests"),
    Column("equivalence_low", Kind.NUMBER, "lower bound of the interval that decides about equivalence, in percent"),
    Column("equivalence_high", Kind.NUMBER, "upper bound of the interval that decides about equivalence, in percent"),
    Column("level", Kind.TEXT, "unit of observation: boots, samples, seeds or functions"),
    Column("detectable", Kind.NUMBER, "smallest change that would show in 4 runs of 5, in percent"),
    Column("more_boots", Kind.INTEGER, "number of additional boots of each side that would decide; empty if unknown"),
    Column("boots_differ", Kind.FLAG, "whether boots of a variant differ by more than their samples scatter"),
    *_summary_columns("base"),
    *_summary_columns("other"),
    Column(
        "lean",
        Kind.NUMBER,
        "how much higher the sentinel stood with the boots of other, in percent; empty where that is no doubt",
    ),
    Column("cautions", Kind.TEXT, "warnings that belong beside the verdict, with semicolons between them"),
)
"""Columns of verdicts.*. Scripts read them by name: append new ones, never rename one."""


def verdicts_table(compared: Iterable[TestComparison]) -> Table:
    """A row for each comparison of a test."""
    found = list(compared)
    return Table(VERDICT_COLUMNS, lambda: iter([_row(comparison) for comparison in found]))


def _row(comparison: TestComparison) -> Row:
    result, effect = comparison.result, comparison.result.effect
    decided: Sequence[Any] = (None,) * 8
    if effect:
        change, equivalence = effect.interval, effect.equivalence
        decided = (change.percent, change.low, change.high, effect.p, equivalence.low, equivalence.high)
        decided = (*decided, str(effect.level), effect.detectable)
    return (
        comparison.test,
        comparison.a,
        comparison.b,
        comparison.unit,
        str(result.direction),
        str(result.verdict),
        str(result.lack) if result.lack else None,
        verdict_words(result, sides=(comparison.a, comparison.b)).replace(THIN_SPACE, " "),
        result.confidence,
        result.margin,
        *map(_finite, decided),
        result.more_boots,
        comparison.boots_differ,
        *_summary(result.boots[0], result.a),
        *_summary(result.boots[1], result.b),
        comparison.lean,
        "; ".join(comparison.cautions).replace(THIN_SPACE, " "),
    )


def _summary(boots: int, summary: Summary | None) -> Sequence[Any]:
    if summary is None:
        return (boots, 0, *(None,) * (len(_SUMMARY) - 2))
    numbers = (summary.mean, summary.median, summary.deviation, summary.minimum, summary.maximum)
    return (boots, summary.n, *map(_finite, numbers))


def _finite(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return float(value) if math.isfinite(value) else None
