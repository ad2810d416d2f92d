# SPDX-License-Identifier: BSD-2-Clause
"""Compares a run with published results of its experiment: published.yaml has the figures and their sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from perfweb.reports.agreement import PublishedChange, agreement
from perfweb.reports.contention import Contention, moved
from perfweb.runs.judging import counted_samples
from perfweb.runs.models import Run, RunState
from perfweb.stats.student import DEFAULT_CONFIDENCE
from perfweb.verdicts.comparisons import TestComparison, compare_variants

FIGURES = Path(__file__).parent / "published.yaml"
_SIGNS = {"higher": 1, "lower": -1}


@dataclass(frozen=True)
class Row:
    """A published effect of `variant` against `base`, and the measured one, None if it was not measured."""

    test: str
    variant: str
    base: str
    published: PublishedChange
    note: str
    comparison: TestComparison | None

    @property
    def words(self) -> str:
        return agreement(self.published, self.comparison.result if self.comparison else None)


@dataclass(frozen=True)
class Published:
    """A published experiment; `rows` are in its order, `contention` is None if no contention was published."""

    title: str
    source: str
    setup: str
    rows: list[Row]
    contention: Contention | None


def beside(run: Run) -> Published | None:
    """Put the published effects of a run's plan beside its own, or None if nothing was published of it or the run is
    not done.
    """
    found = _figures().get(run.plan.name)
    if found is None or run.state != RunState.DONE:
        return None
    variants = {variant.name: variant for variant in run.variants.all()}
    baseline = next((variant.name for variant in variants.values() if variant.baseline), "")
    wanted = {(fields.get("against", baseline), fields["variant"]) for fields in found["effects"]}
    counted = counted_samples([run])[run.pk]
    ours = {
        (base, variant, compared.test): compared
        for base, variant in wanted & {(a, b) for a in variants for b in variants}
        for compared in compare_variants(variants[base], variants[variant], counted, DEFAULT_CONFIDENCE)
    }
    rows = [_row(fields, baseline, ours) for fields in found["effects"]]
    contention = moved(variants, found["contention"]) if "contention" in found else None
    return Published(found["title"], found["source"], found["setup"], rows, contention)


@cache
def _figures() -> dict[str, dict[str, Any]]:
    figures: dict[str, dict[str, Any]] = yaml.safe_load(FIGURES.read_text(encoding="utf-8"))
    return figures


def _row(fields: dict[str, Any], baseline: str, ours: Mapping[tuple[str, str, str], TestComparison]) -> Row:
    test, variant, base = fields["test"], fields["variant"], fields.get("against", baseline)
    known = ours.get((base, variant, test))
    return Row(test, variant, base, _change(fields), fields.get("note", ""), known)


def _change(fields: dict[str, Any]) -> PublishedChange:
    if "sign" in fields:
        return PublishedChange(_SIGNS[fields["sign"]], None)
    percent = fields["percent"] if "percent" in fields else 100 * (fields["is"] / fields["was"] - 1)
    return PublishedChange((percent > 0) - (percent < 0), percent, fields.get("error"))
