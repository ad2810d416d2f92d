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
        """Tell whether all of the interval lies within a margin in percent, read as a factor both ways.

        A margin of 2 % is the ratios from 1/1.02 to 1.02, so that exchanging the sides changes nothing.
        """
        return self.low > -100 * margin / (100 + margin) and self.high < margin


@dataclass(frozen=True, slots=True)
class Means:
    """Two sets of independent observations with the standard deviation that both are assumed to share."""

    a: Summary
    b: Summary
    pooled_deviation: float

    @property
    def degrees_of_freedom(self) -> int:
        return self.a.n + self.b.n - 2

    @property
    def p(self) -> float:
        """Two-sided p-value of Student's t: how often chance makes such a difference of means, or a larger one."""
        error = self.pooled_deviation * math.sqrt(1 / self.a.n + 1 / self.b.n)
        distance = abs(self.b.mean - self.a.mean)
        if error == 0:
            return 0.0 if distance else 1.0
        return float(2 * special.stdtr(self.degrees_of_freedom, -distance / error))

    @property
    def relative_deviation(self) -> float:
        """Pooled deviation in percent of the baseline's mean, which is not zero."""
        return 100 * self.pooled_deviation / abs(self.a.mean)


def means(a: Sequence[float], b: Sequence[float]) -> Means:
    """Summarize two sets of observations, with two or more in each.

    Raises ValueError for fewer, and for an observation that is not finite.
    """
    return pooled(summarize(a), summarize(b))


def pooled(a: Summary, b: Summary) -> Means:
    """Return what `means` does of observations that are summarized already."""
    if min(a.n, b.n) < 2:
        raise ValueError(f"{a.n} and {b.n} observations: an interval needs two or more on each side")
    squares = sum((summary.n - 1) * summary.deviation**2 for summary in (a, b))
    return Means(a, b, math.sqrt(squares / (a.n + b.n - 2)))


def change(found: Means, coverage: float) -> Change | None:
    """Return the ratio of means b / a as a change in percent, with an interval of `coverage` (between 0 and 1).

    Fieller 1954, "Some problems in interval estimation", JRSS B 16: all ratios r for which Student's t does not reject
    that mean b = r * mean a. The interval leaves out 0 % exactly when Student's t with pooled variance proves a
    difference, and unlike ministat's percentages it knows that the baseline's mean is uncertain too. Assumes
    independent, about normal observations of the same variance.

    None where the baseline's mean is not proven to be above zero: then there is no percentage to speak of.
    """
    t = float(special.stdtrit(found.degrees_of_freedom, (1 + coverage) / 2))
    spread = t * found.pooled_deviation
    a, b = found.a, found.b
    if a.mean <= 0:
        return None
    ratio, relative = b.mean / a.mean, spread / a.mean
    doubt = relative * relative / a.n
    if not doubt < 1:
        return None
    root = math.sqrt(doubt * ratio * ratio + (1 - doubt) * relative * relative / b.n)
    bounds = ratio, (ratio - root) / (1 - doubt), (ratio + root) / (1 - doubt)
    percents = [100 * (bound - 1) for bound in bounds]
    return Change(*percents) if all(map(math.isfinite, percents)) else None
