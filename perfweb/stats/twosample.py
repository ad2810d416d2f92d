# SPDX-License-Identifier: BSD-2-Clause
"""Second opinions on two sets of independent observations, with weaker assumptions than Student's t.

They do not decide (perfweb.stats.comparison does); if they disagree, the verdict's graph is worth a look. `scipy.stats`
is imported by the functions that need it, because it takes longer than most commands that import this module.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from perfweb.stats.boots import Boots
from perfweb.stats.ratio import Change
from perfweb.stats.summary import checked

Statistic = Callable[[NDArray[np.float64]], np.float64]

FEWEST_FOR_BOOTSTRAP = 5
"""Min observations on a side; fewer cannot be drawn in enough ways for a result at 95 %."""

RESAMPLES = 1999
_SEED = 1979
_EXACT = 2500
"""Product of both numbers of observations up to which the distribution of U is computed and not approximated."""


@dataclass(frozen=True, slots=True)
class Shift:
    """The difference b - a, in the unit of the samples, with its interval and two-sided p-value."""

    estimate: float
    low: float
    high: float
    p: float


def welch(a: Sequence[float], b: Sequence[float], confidence: float) -> Shift:
    """Return the difference of means with unequal variances, at `confidence` percent.

    Welch 1947, "The generalization of Student's problem when several different population variances are involved",
    Biometrika 34; degrees of freedom by Satterthwaite 1946. Assumes about normal observations. Raises ValueError with
    fewer than two on a side.
    """
    from scipy import stats

    first, second = _sides(a, b)
    found = stats.ttest_ind(second, first, equal_var=False)
    low, high = found.confidence_interval(confidence / 100)
    return Shift(float(second.mean() - first.mean()), float(low), float(high), float(found.pvalue))


def mann_whitney(a: Sequence[float], b: Sequence[float], confidence: float) -> Shift:
    """Return the shift of location that Hodges and Lehmann estimate, with the interval that belongs to the U test.

    Mann and Whitney 1947; Hodges and Lehmann 1963, "Estimates of location based on rank tests"; the interval as in
    Hollander and Wolfe 1999, "Nonparametric Statistical Methods", section 4.3: order statistics of all differences,
    whose coverage is `confidence` percent or more. Assumes distributions that differ in location only. Two or more
    observations on each side, else ValueError.
    """
    from scipy import stats

    first, second = _sides(a, b)
    differences = np.sort(np.subtract.outer(second, first), axis=None)
    place = max(_u_quantile(len(first), len(second), (1 - confidence / 100) / 2), 1)
    p = float(stats.mannwhitneyu(second, first).pvalue)
    return Shift(float(np.median(differences)), float(differences[place - 1]), float(differences[-place]), p)


def permutation_p(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the two-sided p-value of the difference of means among all assignments of the observations to the sides.

    Fisher 1935, "The Design of Experiments"; exact up to 9999 ways, above that as many drawn at random with a fixed
    seed. Assumes only that without a difference the sides could be exchanged. ValueError as for welch().
    """
    from scipy import stats

    first, second = _sides(a, b)

    def statistic(x: NDArray[np.float64], y: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
        difference: NDArray[np.float64] = y.mean(axis=axis) - x.mean(axis=axis)
        return difference

    found = stats.permutation_test((first, second), statistic, vectorized=True, rng=_SEED)
    return float(found.pvalue)


def bootstrap_ratio(a: Boots, b: Boots, statistic: Statistic, confidence: float) -> Change | None:
    """Return the change of a statistic (such as np.median) of all samples in percent, with its bootstrap interval.

    Boots are drawn with replacement, each with all of its samples (Davison and Hinkley 1997, "Bootstrap Methods",
    section 3.8); pass every sample as a boot of its own if samples are independent. The interval is corrected for bias
    and acceleration (Efron 1987, "Better bootstrap confidence intervals", JASA 82). None with fewer than five boots on
    a side, or if the baseline's statistic is not above zero or all draws are equal.
    """
    from scipy import stats

    if min(len(a), len(b)) < FEWEST_FOR_BOOTSTRAP:
        return None
    groups = [[checked(boot) for boot in boots] for boots in (a, b)]

    def percent(first: NDArray[np.intp], second: NDArray[np.intp]) -> float:
        base, other = (
            float(statistic(np.concatenate([boots[index] for index in drawn])))
            for boots, drawn in zip(groups, (first, second), strict=True)
        )
        return 100 * (other / base - 1) if base > 0 else math.nan

    everything = np.arange(len(a)), np.arange(len(b))
    seen = percent(*everything)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = stats.bootstrap(
            everything,
            percent,
            n_resamples=RESAMPLES,
            confidence_level=confidence / 100,
            method="BCa",
            vectorized=False,
            rng=_SEED,
        )
    low, high = found.confidence_interval
    return Change(seen, float(low), float(high)) if math.isfinite(low + high + seen) else None


def _sides(a: Sequence[float], b: Sequence[float]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    first, second = checked(a), checked(b)
    if min(len(first), len(second)) < 2:
        raise ValueError(f"{len(first)} and {len(second)} observations: this needs two or more on each side")
    return first, second


def _u_quantile(n: int, m: int, probability: float) -> int:
    """Return the smallest u with P(U <= u) >= probability without a difference (R's qwilcox).

    The number of arrangements with each u are the coefficients of the Gaussian binomial; beyond _EXACT the normal
    approximation.
    """
    if n * m > _EXACT:
        deviation = math.sqrt(n * m * (n + m + 1) / 12)
        return max(0, round(n * m / 2 + float(special.ndtri(probability)) * deviation))
    counts = np.zeros(n * m + 1)
    counts[0] = 1
    for k in range(1, m + 1):
        counts[n + k :] -= counts[: -(n + k)].copy()
        for start in range(k):
            counts[start::k] = np.cumsum(counts[start::k])
    return int(np.searchsorted(np.cumsum(counts) / counts.sum(), probability * (1 - 1e-12)))
