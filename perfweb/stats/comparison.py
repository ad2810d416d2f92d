# SPDX-License-Identifier: BSD-2-Clause
"""From the samples of two variants to a verdict: the only place that decides."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache, partial

import numpy as np

from perfweb.stats.boots import Boots, Level, boots_differ, replicates
from perfweb.stats.design.power import detectable, needed_to_decide
from perfweb.stats.ratio import Change, change, means, unequal
from perfweb.stats.shape import Modes, modes
from perfweb.stats.student import DEFAULT_CONFIDENCE, MINIMUM_SAMPLES, checked_confidence
from perfweb.stats.summary import Summary, summarize

DEFAULT_MARGIN = 2.0
"""Percent within which two variants count as equivalent; docs/explanation/statistics.md has the reason."""

MINIMUM_BOOTS = 2
"""Min boots of a variant, because one does not show how much its boots differ."""


class Direction(StrEnum):
    """The better direction of a number."""

    HIGHER = "higher"
    LOWER = "lower"


class Verdict(StrEnum):
    """The possible verdicts, the worst result first: summaries count them in this order.

    A test has failed if one side has no result because the test failed on all of its boots. Results of a run that is
    not done are not judged: to look at them again and again until they please would find what is not there.
    """

    FAILED = "failed"
    SLOWER = "slower"
    FASTER = "faster"
    NOT_ENOUGH_DATA = "not enough data"
    NOT_JUDGED = "not judged"
    EQUIVALENT = "equivalent"
    IDENTICAL = "identical"


class Lack(StrEnum):
    """The missing condition if there is no other verdict than failed, not judged or not enough data."""

    SAMPLES = "samples"
    BOOTS = "boots"
    BASELINE = "a baseline above zero"
    MODES = "a single mode"
    PRECISION = "precision"
    SEEDS = "a seed in common"
    CERTAINTY = "certainty among many tests"
    RESULT = "a boot on which the test worked"
    VALIDITY = "a sample that is not void"
    END = "the end of the run"


@dataclass(frozen=True, slots=True)
class Effect:
    """The estimated change from a to b in percent of a, at a level of observation.

    `interval` has the comparison's confidence; it decides about faster and slower, and `p` is its p-value.
    `equivalence` is the narrower interval of two one-sided tests at that confidence, which decides about equivalence.
    `observations` is the number on each side at `level`. `detectable` is the change in percent that this many, with
    this noise, detect with a power of 80 %. `needed` is the number on each side that would decide about the margin with
    that power, or prove the observed change if that is larger; None if no number would.
    `widened` returns `interval` at another coverage (between 0 and 1), None where there is no such interval.
    """

    level: Level
    observations: tuple[int, int]
    interval: Change
    p: float
    equivalence: Change
    detectable: float
    needed: int | None
    widened: Callable[[float], Change | None] = field(default=lambda _: None, compare=False, repr=False)

    @property
    def proven(self) -> bool:
        """Whether there is any proven difference, however small."""
        return self.interval.leaves_out_zero


@dataclass(frozen=True, slots=True)
class Comparison:
    """The verdict on variant `b` against the baseline `a`, with its data.

    `confidence` and `margin` are in percent. The summaries, of all samples, are None for an empty set. `boots` is the
    number of boots of each side, and `modes` are the two values around which its samples gather, None for one or if
    they are no farther apart than the margin. `effect` is None when no interval can be given; `lack` is the missing
    condition if there is not enough data, and None otherwise.
    """

    verdict: Verdict
    direction: Direction
    confidence: float
    margin: float
    a: Summary | None
    b: Summary | None
    boots: tuple[int, int]
    modes: tuple[Modes | None, Modes | None]
    effect: Effect | None
    lack: Lack | None

    @property
    def more_boots(self) -> int | None:
        """Return how many more boots of each variant would decide, with as many samples on each as before.

        None if that is unknown or no number would decide. Zero if the present number should have been enough.
        """
        if self.effect is None or self.effect.needed is None:
            return None
        observations, boots = min(self.effect.observations), min(self.boots)
        return max(0, math.ceil((self.effect.needed - observations) * boots / observations))


def compare(
    a: Sequence[float],
    b: Sequence[float],
    direction: Direction | str,
    confidence: float = DEFAULT_CONFIDENCE,
    margin: float = DEFAULT_MARGIN,
) -> Comparison:
    """Judge independent samples `b` against the baseline's samples `a`: compare_boots() with a boot for each sample."""
    return compare_boots([[value] for value in a], [[value] for value in b], direction, confidence, margin)


def compare_boots(
    a: Boots,
    b: Boots,
    direction: Direction | str,
    confidence: float = DEFAULT_CONFIDENCE,
    margin: float = DEFAULT_MARGIN,
) -> Comparison:
    """Judge the samples of variant `b`, boot by boot, against the baseline's `a`, all in the same unit.

    The change is proven (faster, slower) when its confidence interval excludes zero. It is equivalent when the interval
    of two one-sided tests (Schuirmann 1987) is within ± `margin` percent. That comes first: a change that is certain
    but too small to matter is equivalent. Samples with two modes are not averaged: only sets that do not overlap can
    differ. Everything else is not enough data, which is no error.

    Raises ValueError for an unknown direction, an unsupported confidence level, a margin that is not between 0 and
    100 %, or a sample that is not finite.
    """
    better, level = Direction(direction), checked_confidence(confidence)
    checked_margin(margin)
    sides = [[boot for boot in boots if len(boot)] for boots in (a, b)]
    first, second = (summarize([value for boot in boots for value in boot]) if boots else None for boots in sides)
    gathered = _modes(tuple(map(tuple, sides[0])), margin), _modes(tuple(map(tuple, sides[1])), margin)
    effect, verdict = None, Verdict.NOT_ENOUGH_DATA
    if (lack := _lack(sides)) is None:
        effect = _effect(sides[0], sides[1], level, margin)
        if effect is None:
            lack = Lack.BASELINE
        elif any(gathered) and _overlap(first, second):
            lack = Lack.MODES
        else:
            verdict = judge(effect.interval, effect.equivalence, better, margin)
            lack = Lack.PRECISION if verdict is Verdict.NOT_ENOUGH_DATA else None
    counts = len(sides[0]), len(sides[1])
    return Comparison(verdict, better, level, margin, first, second, counts, gathered, effect, lack)


def among(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Withdraw those of many changes that may be chance: among twenty tests one is proven at 95 % without any change.

    The false discovery rate of the remaining faster or slower ones is at most 1 - confidence (Benjamini and Hochberg
    1995, "Controlling the false discovery rate", JRSS B 57). All comparisons have the same confidence.

    A withdrawn one has the interval of this decision, which includes zero: with n tests, of which k stay proven, its
    coverage is 1 - max(k, 1) / n (1 - confidence) (Benjamini and Yekutieli 2005, "False discovery rate-adjusted
    multiple confidence intervals for selected parameters", JASA 100).
    """
    known = [found for found in comparisons if found.effect]
    chances = benjamini_hochberg([found.effect.p for found in known if found.effect])
    stay = sum(chance <= _error(found) for found, chance in zip(known, chances, strict=True))
    share = max(stay, 1) / max(len(known), 1)
    adjusted = iter(chances)
    return [
        _withdrawn(found, share) if found.effect and next(adjusted) > _error(found) else found for found in comparisons
    ]


def _error(found: Comparison) -> float:
    return 1 - found.confidence / 100


def _withdrawn(found: Comparison, share: float) -> Comparison:
    """The same comparison without its verdict, if that may be chance, and with the interval at a share of the error."""
    if found.verdict not in {Verdict.FASTER, Verdict.SLOWER} or found.effect is None:
        return found
    wide = found.effect.widened(1 - share * _error(found))
    effect = replace(found.effect, interval=wide) if wide else found.effect
    return replace(found, verdict=Verdict.NOT_ENOUGH_DATA, lack=Lack.CERTAINTY, effect=effect)


def benjamini_hochberg(p: Sequence[float]) -> list[float]:
    """Return p-values adjusted so that those up to q have a false discovery rate of q (R's p.adjust, method "BH")."""
    order = sorted(range(len(p)), key=lambda index: p[index], reverse=True)
    adjusted, smallest = [1.0] * len(p), 1.0
    for rank, index in zip(range(len(p), 0, -1), order, strict=True):
        smallest = min(smallest, p[index] * len(p) / rank)
        adjusted[index] = smallest
    return adjusted


@lru_cache(maxsize=1000)
def _modes(boots: tuple[tuple[float, ...], ...], margin: float) -> Modes | None:
    """Return the two modes of samples, None for one or if they are no farther apart than the margin in percent.

    Boots that differ may each have a separate value; then the modes are those of their means.
    """
    if not boots:
        return None
    samples = [value for boot in boots for value in boot]
    if 100 * (max(samples) - min(samples)) <= margin * min(samples):
        return None  # at once: no modes are farther apart than all samples
    found = modes([float(np.mean(boot)) for boot in boots] if boots_differ(boots) else samples)
    return found if found and found.apart > margin else None


def _overlap(a: Summary | None, b: Summary | None) -> bool:
    return a is not None and b is not None and a.minimum <= b.maximum and b.minimum <= a.maximum


def _lack(sides: Sequence[Boots]) -> Lack | None:
    if any(sum(map(len, boots)) < MINIMUM_SAMPLES for boots in sides):
        return Lack.SAMPLES
    if any(len(boots) < MINIMUM_BOOTS for boots in sides):
        return Lack.BOOTS
    return None


def _effect(a: Boots, b: Boots, confidence: float, margin: float) -> Effect | None:
    """Estimate the change at the permitted level; None if no interval can be given."""
    counted = replicates(a, b)
    found = means(counted.a, counted.b)
    if change(found, confidence / 100) is None:
        found = unequal(found.a, found.b)  # the scatter of the other side may be many times the baseline's mean
    interval = change(found, confidence / 100)
    equivalence = change(found, 2 * confidence / 100 - 1)
    if interval is None or equivalence is None:
        return None
    sizes = found.a.n, found.b.n
    return Effect(
        level=counted.level,
        observations=sizes,
        interval=interval,
        p=found.p,
        equivalence=equivalence,
        detectable=detectable(found.relative_deviation, *sizes, confidence),
        needed=needed_to_decide(max(margin, abs(interval.percent)), found.relative_deviation, confidence),
        widened=partial(change, found),
    )


def checked_margin(margin: float) -> float:
    """Return a margin in percent, or raise ValueError when it is not between 0 and 100."""
    if not 0 < margin < 100:
        raise ValueError(f"a margin of {margin:g} % makes no sense: choose one between 0 and 100")
    return margin


def judge(interval: Change, equivalence: Change, direction: Direction, margin: float) -> Verdict:
    """Decide: equivalent when `equivalence` lies within the margin, else different when `interval` leaves out zero."""
    if equivalence.lies_within(margin):
        return Verdict.EQUIVALENT
    if not interval.leaves_out_zero:
        return Verdict.NOT_ENOUGH_DATA
    better = (interval.percent > 0) == (direction is Direction.HIGHER)
    return Verdict.FASTER if better else Verdict.SLOWER
