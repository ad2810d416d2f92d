# SPDX-License-Identifier: BSD-2-Clause
"""What a run found beside what was published of its experiment: published.yaml has the figures and their sources."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from perfweb.reports.comparisons import TestComparison
from perfweb.reports.numbers import percent
from perfweb.reports.verdicts import run_pairs
from perfweb.runs.judging import counted_samples
from perfweb.runs.models import Run

FIGURES = Path(__file__).parent / "published.yaml"


@dataclass(frozen=True)
class PublishedEffect:
    """A change in percent of the baseline's number, 0 for none; `error` is half of its interval, if one was given."""

    test: str
    variant: str
    percent: float
    error: float | None
    note: str

    @property
    def words(self) -> str:
        if not self.percent:
            return "none"
        given = percent(self.percent, signed=True)
        return given if self.error is None else f"{given} ±{percent(self.error)}"


@dataclass(frozen=True)
class Row:
    """A published effect and the run's own, None where it was not measured."""

    effect: PublishedEffect
    comparison: TestComparison | None

    @property
    def words(self) -> str:
        """How the two go together.  What is not proven has no sign."""
        found = self.comparison.result if self.comparison else None
        if found is None or found.effect is None:
            return "not measured here"
        ours = found.effect.interval
        if found.lack is not None or not found.effect.proven:
            return f"no difference proven; the run could have seen {percent(found.effect.detectable)}"
        if not self.effect.percent:
            return "a difference here, none there"
        if (ours.percent > 0) != (self.effect.percent > 0):
            return "the other sign"
        return "the same sign, and the size agrees" if self._sizes_meet(ours.low, ours.high) else "the same sign"

    def _sizes_meet(self, low: float, high: float) -> bool:
        error = self.effect.error or 0.0
        return self.effect.percent - error <= high and low <= self.effect.percent + error


@dataclass(frozen=True)
class Published:
    """A published experiment; `rows` are in its order."""

    title: str
    source: str
    setup: str
    rows: list[Row]


def beside(run: Run) -> Published | None:
    """Put the published effects of a run's plan beside its own, or None if nothing was published of it."""
    found = _figures().get(run.plan.name)
    if found is None:
        return None
    pairs = run_pairs(run.variants.all(), counted_samples([run])[run.pk])
    ours = {(pair.b.name, compared.test): compared for pair in pairs for compared in pair.compared}
    effects = [_effect(fields) for fields in found["effects"]]
    rows = [Row(effect, ours.get((effect.variant, effect.test))) for effect in effects]
    return Published(found["title"], found["source"], found["setup"], rows)


@cache
def _figures() -> dict[str, dict[str, Any]]:
    figures: dict[str, dict[str, Any]] = yaml.safe_load(FIGURES.read_text(encoding="utf-8"))
    return figures


def _effect(fields: dict[str, Any]) -> PublishedEffect:
    change = fields["percent"] if "percent" in fields else 100 * (fields["is"] / fields["was"] - 1)
    return PublishedEffect(fields["test"], fields["variant"], change, fields.get("error"), fields.get("note", ""))
