# SPDX-License-Identifier: BSD-2-Clause
"""Effects of knobs on tests, and at each number of CPUs, from the variants of a run that differ in knobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from perfweb.runs.judging import CountedSamples, SampleSet
from perfweb.runs.models import Variant
from perfweb.stats.comparison import Direction
from perfweb.stats.factorial import Factor, KnobEffect, knob_effects
from perfweb.verdicts import names

CPUS = "machine.cpus"
"""The knob for the number of CPUs of the stack; the effect of every other one is shown for each of its levels."""

Settings = Mapping[int, Mapping[str, str]]
"""The knobs that differ between variants, by the variant's key."""

# Sizes in percent from which a cell of the heat map is darker.
_STEPS = (0.5, 2.0, 5.0, 15.0)


@dataclass(frozen=True)
class EffectCell:
    """The effect of a knob on a test; `good` is whether it is an improvement."""

    effect: KnobEffect | None
    good: bool

    @property
    def heat(self) -> str:
        """The class of the style sheet: size and direction."""
        if self.effect is None or self.effect.percent is None:
            return ""
        strength = sum(abs(self.effect.percent) >= step for step in _STEPS)
        return f"{'good' if self.good else 'bad'}-{strength}" if strength else ""


@dataclass(frozen=True)
class EffectRow:
    """One knob, or the interaction of two, on all tests; with that many CPUs, if it is about those alone."""

    factors: tuple[Factor, ...]
    cells: list[EffectCell]
    cpus: str = ""


@dataclass(frozen=True)
class KnobResults:
    """The counted samples of a run, and the knobs of its variants."""

    variants: Sequence[Variant]
    settings: Settings
    counted: CountedSamples

    @cached_property
    def tests(self) -> list[str]:
        return names.in_order(self.counted.tests)

    @property
    def knobs(self) -> list[str]:
        """The names of the knobs that differ between the variants."""
        return list(next(iter(self.settings.values()), {}))

    @cached_property
    def cpu_counts(self) -> list[str]:
        """The numbers of CPUs of the variants, the smallest first; empty if they do not differ."""
        found = {setting.get(CPUS, "") for setting in self.settings.values()}
        return sorted(found, key=int) if len(found) > 1 and all(count.isdecimal() for count in found) else []

    def rows(self) -> list[EffectRow]:
        """The main effects, then the interactions."""
        by_test = {test: self._effects(test) for test in self.tests}
        known = dict.fromkeys(factors for found in by_test.values() for factors in found)
        return [
            EffectRow(factors, [by_test[test].get(factors, EffectCell(None, good=False)) for test in self.tests])
            for factors in known
        ]

    def rows_by_cpus(self) -> list[EffectRow]:
        """The main effects of the other knobs among the variants with the same number of CPUs, knob by knob."""
        found = []
        for cpus in self.cpu_counts:
            chosen = [variant for variant in self.variants if self.settings[variant.pk][CPUS] == cpus]
            part = replace(self, variants=chosen, settings=self._without_cpus)
            found += [replace(row, cpus=cpus) for row in part.rows() if len(row.factors) == 1]
        return sorted(found, key=lambda row: [(factor.knob, factor.base, factor.level) for factor in row.factors])

    def scaling(self, test: str) -> dict[str, dict[int, list[float]]]:
        """The mean of each boot by number of CPUs, for each setting of the other knobs."""
        lines: dict[str, dict[int, list[float]]] = {}
        for variant, samples in self.measured(test):
            others = self._without_cpus[variant.pk]
            name = ", ".join(f"{knob} {value}" for knob, value in others.items()) or "all"
            cpus = int(self.settings[variant.pk][CPUS])
            lines.setdefault(name, {}).setdefault(cpus, []).extend(_means(samples))
        return lines

    def measured(self, test: str) -> list[tuple[Variant, SampleSet]]:
        """The variants with samples of a test, the baseline first."""
        ordered = sorted(self.variants, key=lambda variant: (not variant.baseline, variant.position))
        found = ((variant, self.counted.sets.get((variant.pk, test))) for variant in ordered)
        return [(variant, samples) for variant, samples in found if samples]

    @cached_property
    def _without_cpus(self) -> Settings:
        return _only(self.settings, lambda name: name != CPUS)

    def _effects(self, test: str) -> dict[tuple[Factor, ...], EffectCell]:
        """The effects on one test; a boot is one observation, because its samples are not independent."""
        found = self.measured(test)
        boots = [
            (self.settings[variant.pk], mean) for variant, samples in found for mean in _means(samples) if mean > 0
        ]
        if not boots:
            return {}
        higher = found[0][1].direction == Direction.HIGHER
        effects = knob_effects([setting for setting, _ in boots], [mean for _, mean in boots])
        return {effect.factors: EffectCell(effect, ((effect.percent or 0) > 0) == higher) for effect in effects}


def knob_settings(variants: Sequence[Variant]) -> Settings:
    """Return, by variant's key, the knobs that differ between the variants: tunables, build options and target."""
    every = {variant.pk: _knobs(variant) for variant in variants}
    known = sorted({name for knobs in every.values() for name in knobs})
    complete = {key: {name: knobs.get(name, "") for name in known} for key, knobs in every.items()}
    return _only(complete, lambda name: len({knobs[name] for knobs in complete.values()}) > 1)


def _only(settings: Settings, wanted: Callable[[str], bool]) -> Settings:
    return {key: {name: value for name, value in knobs.items() if wanted(name)} for key, knobs in settings.items()}


def _knobs(variant: Variant) -> dict[str, str]:
    options = dict(option.removeprefix("-D").partition("=")[::2] for option in variant.build_options)
    return {"target": variant.target, **options, **{name: str(value) for name, value in variant.tunables.items()}}


def _means(samples: SampleSet) -> list[float]:
    return [sum(boot) / len(boot) for boot in samples.by_boot]
