# SPDX-License-Identifier: BSD-2-Clause
"""Compares runs with published results of their experiments: published.yaml has the figures and their sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
class Effect:
    """A published effect of `variant` against `base`, the plan's baseline if it is empty. `simulated` is the test that
    repeats it on the simulated machine, empty if none does.
    """

    test: str
    variant: str
    base: str
    change: PublishedChange
    note: str
    simulated: str


@dataclass(frozen=True)
class Experiment:
    """A published experiment, by the name of the plan that repeats it. `claim` is what its author found, `here` how the
    plan repeats it, and `differs` what is not as it was there; `simulated` is the plan for the simulated machine.
    """

    name: str
    year: int
    title: str
    source: str
    setup: str
    claim: str
    here: str
    differs: str
    simulated: str
    effects: list[Effect]
    contention: Mapping[str, Any] | None


@dataclass(frozen=True)
class Row:
    """A published effect, the test and the base of the run that repeats it, and its result, None if it has none."""

    effect: Effect
    test: str
    base: str
    comparison: TestComparison | None

    @property
    def words(self) -> str:
        """Whether both agree."""
        return agreement(self.effect.change, self.comparison.result if self.comparison else None)


@dataclass(frozen=True)
class Published:
    """A published experiment beside a run; `rows` are in its order, `contention` is None if the run's plan has none."""

    experiment: Experiment
    rows: list[Row]
    contention: Contention | None


@cache
def experiments() -> list[Experiment]:
    """Return the published experiments, the oldest first."""
    figures = yaml.safe_load(FIGURES.read_text(encoding="utf-8"))
    found = [_experiment(name, fields) for name, fields in figures.items()]
    return sorted(found, key=lambda one: one.year)


def beside(run: Run) -> Published | None:
    """Put the published effects of a run's plan beside its own, or None if nothing was published of it or the run is
    not done.
    """
    plan = run.plan.name
    experiment = next((one for one in experiments() if plan in {one.name, one.simulated}), None)
    if experiment is None or run.state != RunState.DONE:
        return None
    variants = {variant.name: variant for variant in run.variants.all()}
    baseline = next((variant.name for variant in variants.values() if variant.baseline), "")
    tests = [(one.test if plan == experiment.name else one.simulated, one) for one in experiment.effects]
    wanted = {(one.base or baseline, one.variant) for _, one in tests}
    counted = counted_samples([run])[run.pk]
    ours = {
        (base, variant, compared.test): compared
        for base, variant in wanted & {(a, b) for a in variants for b in variants}
        for compared in compare_variants(variants[base], variants[variant], counted, DEFAULT_CONFIDENCE)
    }
    rows = [_row(one, test, one.base or baseline, ours) for test, one in tests if test]
    profiled = experiment.contention if plan == experiment.name else None
    return Published(experiment, rows, moved(variants, profiled) if profiled else None)


def _row(effect: Effect, test: str, base: str, ours: Mapping[tuple[str, str, str], TestComparison]) -> Row:
    return Row(effect, test, base, ours.get((base, effect.variant, test)))


def _experiment(name: str, fields: Mapping[str, Any]) -> Experiment:
    words = {key: fields[key] for key in ("year", "title", "source", "setup", "claim", "here", "differs")}
    effects = _effects(fields["effects"])
    return Experiment(
        name, **words, simulated=fields.get("simulated", ""), effects=effects, contention=fields.get("contention")
    )


def _effects(found: Sequence[Mapping[str, Any]]) -> list[Effect]:
    return [
        Effect(
            fields["test"],
            fields["variant"],
            fields.get("against", ""),
            _change(fields),
            fields.get("note", ""),
            fields.get("simulated", ""),
        )
        for fields in found
    ]


def _change(fields: Mapping[str, Any]) -> PublishedChange:
    if "sign" in fields:
        return PublishedChange(_SIGNS[fields["sign"]], None)
    percent = fields["percent"] if "percent" in fields else 100 * (fields["is"] / fields["was"] - 1)
    return PublishedChange((percent > 0) - (percent < 0), percent, fields.get("error"))
