# SPDX-License-Identifier: BSD-2-Clause
"""Deciding while measuring: after each block of boots, decided or go on, with an interval that may always be looked at.

Whoever looks at a 95 % interval after every boot and stops when it leaves out zero is wrong far more often than in one
experiment of twenty. The intervals here form a confidence sequence: with the promised probability the true change lies
in all of them at once, however often one looks and for whatever reason one stops.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perfweb.stats.boots import Boots
from perfweb.stats.comparison import DEFAULT_MARGIN, Direction, Verdict, checked_margin, judge
from perfweb.stats.power import fewest
from perfweb.stats.ratio import Change, means

Block = tuple[Boots, Boots]
"""The samples of boots of the baseline and of the other variant, measured close together in time (A B, or A B B A)."""

DEFAULT_ALPHA = 0.05

PRIOR = 0.05
"""Inverse variance of the mixture over the size of the change, in standard deviations of a boot.

Any value is honest. A small one suits large changes and few boots: with this one the interval at three boots of each
variant is as narrow as it can be, and at ten within a tenth of that.
"""

MOST = 100.0
"""Half width of an interval of logarithms that says nothing any more."""

SMALLEST = 1e-12
"""Relative deviation that boots have at least: that of rounding."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What is known after some blocks; a verdict of not enough data means: go on.

    `change` is in percent of the baseline, None while no interval can be given. `boots` is how many of each variant
    were seen, and `needed` how many of each it will take when the scatter stays what it is, None when not known.
    """

    verdict: Verdict
    change: Change | None
    boots: tuple[int, int]
    needed: int | None

    @property
    def decided(self) -> bool:
        return self.verdict is not Verdict.NOT_ENOUGH_DATA


def decide(
    blocks: Sequence[Block],
    margin: float = DEFAULT_MARGIN,
    alpha: float = DEFAULT_ALPHA,
    direction: Direction | str = Direction.HIGHER,
) -> Decision:
    """Judge the blocks so far: faster, slower or equivalent within `margin` percent, or go on.

    One observation is the logarithm of the mean of a boot, so that samples of one boot may depend on each other as they
    like. The boots of a variant are assumed to be independent, about normal, and of the same scatter in both. However
    often this is asked, the chance that any verdict of a run is wrong is at most `alpha`: that of telling apart what is
    the same, and of calling equivalent what differs by more than the margin.

    Raises ValueError for an alpha that is not between 0 and 1, a bad margin or direction, or a boot whose mean is not
    above zero.
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha is {alpha:g}: it is a probability, choose one between 0 and 1, such as 0.05")
    checked_margin(margin)
    a, b = (_logarithms([boot for block in blocks for boot in block[side]]) for side in (0, 1))
    counts = len(a), len(b)
    if min(counts) < 2:
        return Decision(Verdict.NOT_ENOUGH_DATA, None, counts, None)
    found = means(a, b)
    seen, deviation = found.b.mean - found.a.mean, max(found.pooled_deviation, SMALLEST)
    error = deviation * half_width(*counts, alpha)
    change, verdict = None, Verdict.NOT_ENOUGH_DATA
    if error < MOST:
        change = Change(*(100 * math.expm1(bound) for bound in (seen, seen - error, seen + error)))
        verdict = judge(change, change, Direction(direction), margin)
    goal = max(math.log1p(margin / 100), abs(seen)) / deviation
    return Decision(verdict, change, counts, fewest(lambda n: half_width(n, n, alpha) <= goal))


def half_width(n_a: int, n_b: int, alpha: float) -> float:
    """Return half the width of the interval after n_a and n_b observations, in pooled standard deviations.

    The likelihood ratio of t, with the size of the change mixed over a normal distribution, to t without a change is a
    martingale while there is no change, whatever mean and scatter are (Lai 1976, "On confidence sequences", Annals of
    Statistics 4; Perez-Ortiz, Lardy, de Heide and Gruenwald 2024, "E-statistics, group invariance and anytime-valid
    testing", Annals of Statistics 52). So it ever exceeds 1/alpha with a chance of at most alpha (Ville 1939). With f
    degrees of freedom, m = n_a n_b / (n_a + n_b) and c the inverse variance of the mixture it is

        sqrt(c / (m + c)) * ((1 + t^2/f) / (1 + t^2/f * c/(m + c))) ^ ((f + 1)/2)

    and the interval holds all differences for which it does not. Infinite while no difference would exceed it.
    """
    freedom, size = n_a + n_b - 2, n_a * n_b / (n_a + n_b)
    shrink = PRIOR / (size + PRIOR)
    if freedom < 1:
        return math.inf
    limit = (shrink * alpha * alpha) ** (-1 / (freedom + 1))
    rest = 1 - limit * shrink
    return math.sqrt((limit - 1) * freedom / (size * rest)) if rest > 0 else math.inf


def _logarithms(boots: Sequence[Sequence[float]]) -> list[float]:
    averages = [float(np.mean(boot)) for boot in boots if len(boot)]
    if any(not average > 0 for average in averages):
        raise ValueError("the mean of a boot is not above zero, so there is no ratio: compare something else")
    return [math.log(average) for average in averages]
