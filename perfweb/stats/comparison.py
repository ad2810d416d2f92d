# SPDX-License-Identifier: BSD-2-Clause
"""From the samples of two variants to a verdict: the one place that decides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from perfweb.stats.boots import Boots, Level, replicates
from perfweb.stats.power import detectable, needed_to_decide
from perfweb.stats.ratio import Change, change, means
from perfweb.stats.student import DEFAULT_CONFIDENCE, MINIMUM_SAMPLES, checked_confidence
from perfweb.stats.summary import Summary, summarize

DEFAULT_MARGIN = 2.0
"""Percent within which two variants count as equivalent: docs/statistics.md says why."""

MINIMUM_BOOTS = 2
"""One boot of a variant says nothing about how much its boots differ."""


class Direction(StrEnum):
    """Which way of a number is better."""

    HIGHER = "higher"
    LOWER = "lower"


class Verdict(StrEnum):
    """What may be said about two variants."""

    FASTER = "faster"
    SLOWER = "slower"
    EQUIVALENT = "equivalent"
    NOT_ENOUGH_DATA = "not enough data"


class Lack(StrEnum):
    """What is missing where there is not enough data."""

    SAMPLES = "samples"
    BOOTS = "boots"
    BASELINE = "a baseline above zero"
    PRECISION = "precision"


@dataclass(frozen=True, slots=True)
class Effect:
    """The change from a to b in percent of a, as it was estimated at a level.

    `interval` has the comparison's confidence; it decides about faster and slower. `equivalence` is the narrower
    interval of two one-sided tests at that confidence, which decides about equivalence. `observations` is the number
    on each side at `level`. `detectable` is the change in percent that this many, with this noise, show four times out
    of five. `needed` is the number on each side that would decide four times out of five about the margin, or prove a
    change such as was seen where that is larger; None where no number would.
    """

    level: Level
    observations: tuple[int, int]
    interval: Change
    equivalence: Change
    detectable: float
    needed: int | None

    @property
    def proven(self) -> bool:
        """Whether there is a difference at all, however small."""
        return self.interval.leaves_out_zero


@dataclass(frozen=True, slots=True)
class Comparison:
    """The verdict on variant `b` against the baseline `a`, with everything that it rests on.

    `confidence` and `margin` are in percent. The summaries, of all samples, are None for an empty set. `boots` is how
    often each side was booted. `effect` is None when not even an interval can be given; `lack` says what is missing
    where there is not enough data, and is None otherwise.
    """

    verdict: Verdict
    direction: Direction
    confidence: float
    margin: float
    a: Summary | None
    b: Summary | None
    boots: tuple[int, int]
    effect: Effect | None
    lack: Lack | None

    @property
    def more_boots(self) -> int | None:
        """How many more boots of each variant would decide, if they give as many samples as these.

        None where that is not known or no number would do. Zero where as many should have been enough.
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

    The change is proven (faster, slower) when its confidence interval leaves out zero; it is equivalent when the
    interval of two one-sided tests (Schuirmann 1987) lies within ± `margin` percent, and that comes first: a change
    that is certain but too small to matter is equivalent. Everything else is not enough data, which is no error.

    Raises ValueError for an unknown direction, an unsupported confidence level, a margin that is not between 0 and
    100 %, or a sample that is not finite.
    """
    better, level = Direction(direction), checked_confidence(confidence)
    if not 0 < margin < 100:
        raise ValueError(f"a margin of {margin:g} % makes no sense: choose one between 0 and 100")
    sides = [[boot for boot in boots if len(boot)] for boots in (a, b)]
    summaries = [summarize([value for boot in boots for value in boot]) if boots else None for boots in sides]
    lack, effect = _lack(summaries, sides), None
    if lack is None:
        effect = _effect(sides[0], sides[1], level, margin)
        lack = Lack.BASELINE if effect is None else None
    verdict = _verdict(effect, better, margin)
    if lack is None and verdict is Verdict.NOT_ENOUGH_DATA:
        lack = Lack.PRECISION
    counts = len(sides[0]), len(sides[1])
    return Comparison(verdict, better, level, margin, summaries[0], summaries[1], counts, effect, lack)


def _lack(summaries: Sequence[Summary | None], sides: Sequence[Boots]) -> Lack | None:
    if any(summary is None or summary.n < MINIMUM_SAMPLES for summary in summaries):
        return Lack.SAMPLES
    if any(len(boots) < MINIMUM_BOOTS for boots in sides):
        return Lack.BOOTS
    return None


def _effect(a: Boots, b: Boots, confidence: float, margin: float) -> Effect | None:
    """Estimate the change at the level that may be counted; None where no interval can be given."""
    counted = replicates(a, b)
    found = means(counted.a, counted.b)
    interval = change(found, confidence / 100)
    equivalence = change(found, 2 * confidence / 100 - 1)
    if interval is None or equivalence is None:
        return None
    sizes = found.a.n, found.b.n
    return Effect(
        level=counted.level,
        observations=sizes,
        interval=interval,
        equivalence=equivalence,
        detectable=detectable(found.relative_deviation, *sizes, confidence),
        needed=needed_to_decide(max(margin, abs(interval.percent)), found.relative_deviation, confidence),
    )


def _verdict(effect: Effect | None, direction: Direction, margin: float) -> Verdict:
    if effect is None:
        return Verdict.NOT_ENOUGH_DATA
    if effect.equivalence.lies_within(margin):
        return Verdict.EQUIVALENT
    if not effect.proven:
        return Verdict.NOT_ENOUGH_DATA
    better = (effect.interval.percent > 0) == (direction is Direction.HIGHER)
    return Verdict.FASTER if better else Verdict.SLOWER
