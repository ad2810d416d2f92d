# SPDX-License-Identifier: BSD-2-Clause
"""The effect of each knob on each test, for a run whose variants differ in knobs."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from perfweb.reports import names
from perfweb.reports.comparisons import CountedSamples, counted_samples
from perfweb.reports.views.runs import find_run
from perfweb.runs.models import Variant
from perfweb.stats.comparison import Direction
from perfweb.stats.factorial import Factor, KnobEffect, knob_effects

# From these sizes on, in percent, a cell of the heat map is darker.
_STEPS = (0.5, 2.0, 5.0, 15.0)


@dataclass(frozen=True)
class EffectCell:
    """The effect of a knob on a test; `good` tells whether it is in the good direction."""

    effect: KnobEffect | None
    good: bool

    @property
    def heat(self) -> str:
        """The class of the style sheet: how large, and which way."""
        if self.effect is None or self.effect.percent is None:
            return ""
        strength = sum(abs(self.effect.percent) >= step for step in _STEPS)
        return f"{'good' if self.good else 'bad'}-{strength}" if strength else ""


@dataclass(frozen=True)
class EffectRow:
    """One knob, or the interaction of two, on all tests."""

    factors: tuple[Factor, ...]
    cells: list[EffectCell]


@require_safe
def matrix(request: HttpRequest, number: int) -> HttpResponse:
    """Show the main effects and interactions of the knobs in which the variants of a run differ."""
    run = find_run(number)
    variants = list(run.variants.all())
    settings = knob_settings(variants)
    counted = counted_samples([run])[number]
    tests = names.in_order(counted.tests)
    by_test = {test: _effects(test, variants, settings, counted) for test in tests}
    rows = [_row(factors, tests, by_test) for factors in dict.fromkeys(f for found in by_test.values() for f in found)]
    context = {
        "run": run,
        "tests": tests,
        "mains": [row for row in rows if len(row.factors) == 1],
        "interactions": [row for row in rows if len(row.factors) > 1],
        "knobs": list(next(iter(settings.values()), {})),
    }
    return render(request, "reports/matrix.html", context)


def knob_settings(variants: list[Variant]) -> dict[int, dict[str, str]]:
    """Return, by variant's key, the knobs in which the variants differ: tunables, build options and target."""
    all_knobs = {variant.pk: _knobs(variant) for variant in variants}
    known = sorted({name for knobs in all_knobs.values() for name in knobs})
    differing = [name for name in known if len({knobs.get(name, "") for knobs in all_knobs.values()}) > 1]
    return {key: {name: knobs.get(name, "") for name in differing} for key, knobs in all_knobs.items()}


def _knobs(variant: Variant) -> dict[str, str]:
    options = dict(option.removeprefix("-D").partition("=")[::2] for option in variant.build_options)
    return {"target": variant.target, **options, **{name: str(value) for name, value in variant.tunables.items()}}


def _effects(
    test: str, variants: list[Variant], settings: dict[int, dict[str, str]], counted: CountedSamples
) -> dict[tuple[Factor, ...], EffectCell]:
    """The effects on one test; a boot is one observation, because its samples have much in common."""
    ordered = sorted(variants, key=lambda variant: (not variant.baseline, variant.position))
    found = [
        (settings[variant.pk], counted.sets[variant.pk, test])
        for variant in ordered
        if (variant.pk, test) in counted.sets
    ]
    boots = [(setting, sum(boot) / len(boot)) for setting, samples in found for boot in samples.by_boot]
    boots = [(setting, mean) for setting, mean in boots if mean > 0]
    if not boots:
        return {}
    higher = found[0][1].direction == Direction.HIGHER
    effects = knob_effects([setting for setting, _ in boots], [mean for _, mean in boots])
    return {effect.factors: EffectCell(effect, ((effect.percent or 0) > 0) == higher) for effect in effects}


def _row(
    factors: tuple[Factor, ...], tests: list[str], by_test: dict[str, dict[tuple[Factor, ...], EffectCell]]
) -> EffectRow:
    return EffectRow(factors, [by_test[test].get(factors, EffectCell(None, good=False)) for test in tests])
