# SPDX-License-Identifier: BSD-2-Clause
"""Sequential decisions: after each block of boots, stop or continue, with an interval that is valid at every look.

Testing a 95 % interval after every boot, until it excludes zero, is wrong far more often than in one experiment of
twenty. The intervals here form a confidence sequence: with the promised probability the true change is in all of them
at once, however often they are computed and whatever the reason for stopping.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from perfweb.stats.boots import Boots
from perfweb.stats.comparison import DEFAULT_MARGIN, Direction, Verdict, checked_margin, judge
from perfweb.stats.design.power import fewest
from perfweb.stats.ratio import Change, means
from perfweb.stats.summary import summarize

Block = tuple[Boots, Boots]
"""The samples of boots of the baseline and of the other variant, measured close together in time (A B, or A B B A)."""

DEFAULT_ALPHA = 0.05

PRIOR = 0.05
"""Inverse variance of the mixture over the size of the change, in standard deviations of a boot.

Any value is valid. A small one suits large changes and few boots: with this one the interval of two groups is as narrow
as possible at three boots of each variant, and at ten within a tenth of that.
"""

MOST = 100.0
"""Change of logarithms below which a change has no meaning."""

SMALLEST = 1e-12
"""Min relative deviation of boots: that of rounding."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The state after some blocks; the verdict not enough data means: continue.

    `change` is in percent of the baseline, None while no interval can be given. `boots` is the present number of each
    variant, and `needed` the expected number of each with the present scatter, None if unknown.
    """

    verdict: Verdict
    change: Change | None
    boots: tuple[int, int]
    needed: int | None

    @property
    def decided(self) -> bool:
        return self.verdict is not Verdict.NOT_ENOUGH_DATA


@dataclass(frozen=True, slots=True)
class _Estimate:
    """An estimate of the change of logarithms with the degrees of freedom of its deviation; its variance is a `size`-th
    of the deviation's square.
    """

    change: float
    deviation: float
    freedom: float
    size: float

    def error(self, alpha: float, growth: float = 1.0) -> float:
        """Return half the width of the interval, also for `growth` times as much data."""
        return self.deviation * half_width(round((self.freedom + 1) * growth) - 1, self.size * growth, alpha)


def decide(
    blocks: Sequence[Block],
    margin: float = DEFAULT_MARGIN,
    alpha: float = DEFAULT_ALPHA,
    direction: Direction | str = Direction.HIGHER,
) -> Decision:
    """Judge the blocks so far: faster, slower or equivalent within `margin` percent, or continue.

    One observation is the logarithm of the mean of a boot, so that samples of one boot may depend on each other. There
    are two intervals, each for half of `alpha`: that of the variants' boots as two groups, and that of the differences
    within blocks, which excludes drift between blocks. Their intersection counts.

    However often this is called, the probability that any verdict of a run is wrong is at most `alpha`: that of a
    difference between equal variants, and that of equivalence for a difference larger than the margin. Assumes
    logarithms that are about normal, independent from block to block, and with equal scatter in both variants.

    Raises ValueError for an alpha that is not between 0 and 1, a bad margin or direction, or a boot whose mean is not
    above zero.
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha is {alpha:g}: it is a probability, choose one between 0 and 1, such as 0.05")
    checked_margin(margin)
    better = Direction(direction)
    pairs = [(_logarithms(a), _logarithms(b)) for a, b in blocks]
    counts = sum(len(a) for a, _ in pairs), sum(len(b) for _, b in pairs)
    if min(counts) < 2:
        return Decision(Verdict.NOT_ENOUGH_DATA, None, counts, None)
    estimates = _estimates(pairs)
    needed = _needed(estimates, min(counts), margin, alpha / 2)
    low = max(found.change - found.error(alpha / 2) for found in estimates)
    high = min(found.change + found.error(alpha / 2) for found in estimates)
    if not -MOST < low <= high < MOST:
        return Decision(Verdict.NOT_ENOUGH_DATA, None, counts, needed)
    seen = min(max(estimates[0].change, low), high)
    change = Change(*(100 * math.expm1(bound) for bound in (seen, low, high)))
    return Decision(judge(change, change, better, margin), change, counts, needed)


def half_width(freedom: int, size: float, alpha: float) -> float:
    """Return half the width of an interval, in deviations of one observation that has these degrees of freedom.

    `size` is the number of observations of a mean, n_a n_b / (n_a + n_b) for a difference of two means. The likelihood
    ratio of t, with the size of the change mixed over a normal distribution, to t without a change is a martingale
    while there is no change, for any mean and scatter (Lai 1976, "On confidence sequences", Annals of Statistics 4;
    Perez-Ortiz, Lardy, de Heide and Gruenwald 2024, "E-statistics, group invariance and anytime-valid testing", Annals
    of Statistics 52). So it ever exceeds 1/alpha with a probability of at most alpha (Ville 1939). With f degrees of
    freedom, size m, and c the inverse variance of the mixture it is

        sqrt(c / (m + c)) * ((1 + t^2/f) / (1 + t^2/f * c/(m + c))) ^ ((f + 1)/2)

    and the interval contains all differences for which it does not. Infinite while no difference would exceed it.
    """
    if freedom < 1:
        return math.inf
    shrink = PRIOR / (size + PRIOR)
    limit = (shrink * alpha * alpha) ** (-1 / (freedom + 1))
    rest = 1 - limit * shrink
    return math.sqrt((limit - 1) * freedom / (size * rest)) if rest > 0 else math.inf


def _estimates(pairs: Sequence[tuple[list[float], list[float]]]) -> list[_Estimate]:
    """Estimate the change from the boots as two groups, and from the differences within blocks that have both."""
    groups = means([value for a, _ in pairs for value in a], [value for _, b in pairs for value in b])
    a, b = groups.a, groups.b
    deviation = max(groups.pooled_deviation, SMALLEST)
    found = [_Estimate(b.mean - a.mean, deviation, groups.degrees_of_freedom, a.n * b.n / (a.n + b.n))]
    differences = [sum(b) / len(b) - sum(a) / len(a) for a, b in pairs if a and b]
    if len(differences) > 1:
        within = summarize(differences)
        found.append(_Estimate(within.mean, max(within.deviation, SMALLEST), within.n - 1, within.n))
    return found


def _needed(estimates: Sequence[_Estimate], boots: int, margin: float, alpha: float) -> int | None:
    """Return how many boots of each variant make an interval no wider, to each side, than the margin or the change."""
    goal = max(math.log1p(margin / 100), abs(estimates[0].change))
    return fewest(lambda n: any(found.error(alpha, n / boots) <= goal for found in estimates))


def _logarithms(boots: Boots) -> list[float]:
    averages = [sum(boot) / len(boot) for boot in boots if len(boot)]
    if any(not average > 0 for average in averages):
        raise ValueError("the mean of a boot is not above zero, so there is no ratio: compare something else")
    return [math.log(average) for average in averages]
