# SPDX-License-Identifier: BSD-2-Clause
"""The ratio of two means with its confidence interval, as a change in percent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy import special

from perfweb.stats.summary import Summary, summarize


@dataclass(frozen=True, slots=True)
class Change:
    """How much larger one mean is than another, in percent of the other, between `low` and `high`."""

    percent: float
    low: float
    high: float

    @property
    def leaves_out_zero(self) -> bool:
        return self.low > 0 or self.high < 0

    def lies_within(self, margin: float) -> bool:
        """Return whether the interval is within a margin in percent, read as a factor both ways.

        A margin of 2 % is the ratios from 1/1.02 to 1.02, so that exchanging the sides changes nothing.
        """
        return self.low > -100 * margin / (100 + margin) and self.high < margin


@dataclass(frozen=True, slots=True)
class Means:
    """Two sets of independent observations, with the standard deviation of each for Student's t.

    `pooled()` gives both sets the deviation that they are assumed to share, `unequal()` gives each its own.
    """

    a: Summary
    b: Summary
    deviations: tuple[float, float]
    degrees_of_freedom: float

    @property
    def errors(self) -> tuple[float, float]:
        """The standard error of each mean, in the unit of the observations."""
        return self.deviations[0] / math.sqrt(self.a.n), self.deviations[1] / math.sqrt(self.b.n)

    @property
    def p(self) -> float:
        """Two-sided p-value of Student's t: how often chance makes such a difference of means, or a larger one."""
        error = math.hypot(*self.errors)
        distance = abs(self.b.mean - self.a.mean)
        if error == 0:
            return 0.0 if distance else 1.0
        return float(2 * special.stdtr(self.degrees_of_freedom, -distance / error))

    @property
    def pooled_deviation(self) -> float:
        """The standard deviation of both sets together, each around its own mean."""
        squares = sum((summary.n - 1) * summary.deviation**2 for summary in (self.a, self.b))
        return math.sqrt(squares / (self.a.n + self.b.n - 2))

    @property
    def relative_deviation(self) -> float:
        """Pooled deviation in percent of the baseline's mean, which is not zero."""
        return 100 * self.pooled_deviation / abs(self.a.mean)


def means(a: Sequence[float], b: Sequence[float]) -> Means:
    """Summarize two sets of observations, with two or more in each, which are assumed to have the same variance.

    Raises ValueError for fewer, and for an observation that is not finite.
    """
    return pooled(summarize(a), summarize(b))


def pooled(a: Summary, b: Summary) -> Means:
    """Return the result of `means` for observations that are summarized already."""
    if min(a.n, b.n) < 2:
        raise ValueError(f"{a.n} and {b.n} observations: an interval needs two or more on each side")
    shared = Means(a, b, (a.deviation, b.deviation), a.n + b.n - 2).pooled_deviation
    return Means(a, b, (shared, shared), a.n + b.n - 2)


def unequal(a: Summary, b: Summary) -> Means:
    """Return two sets of two or more observations each, without assuming equal variances.

    Degrees of freedom of Welch 1947, "The generalization of Student's problem when several different population
    variances are involved", Biometrika 34.
    """
    first, second = (summary.deviation * summary.deviation / summary.n for summary in (a, b))
    share = first / (first + second) if first + second else 0.0
    freedom = 1 / (share**2 / (a.n - 1) + (1 - share) ** 2 / (b.n - 1))
    return Means(a, b, (a.deviation, b.deviation), freedom)


def change(found: Means, coverage: float) -> Change | None:
    """Return the ratio of means b / a as a change in percent, with an interval of `coverage` (between 0 and 1).

    Fieller 1954, "Some problems in interval estimation", JRSS B 16: all ratios r for which Student's t does not reject
    that mean b = r * mean a. With pooled variance the interval excludes 0 % exactly when Student's t proves a
    difference. Unlike ministat's percentages it includes the uncertainty of the baseline's mean. Assumes independent,
    about normal observations.

    None if the baseline's mean is not proven to be above zero, because then a percentage has no meaning.
    """
    t = float(special.stdtrit(found.degrees_of_freedom, (1 + coverage) / 2))
    a, b = found.a, found.b
    if a.mean <= 0:
        return None
    ratio = b.mean / a.mean
    relative = [t * error / a.mean for error in found.errors]
    doubt, spread = (error * error for error in relative)
    if not doubt < 1:
        return None
    root = math.sqrt(doubt * ratio * ratio + (1 - doubt) * spread)
    bounds = ratio, (ratio - root) / (1 - doubt), (ratio + root) / (1 - doubt)
    percents = [100 * (bound - 1) for bound in bounds]
    return Change(*percents) if all(map(math.isfinite, percents)) else None
