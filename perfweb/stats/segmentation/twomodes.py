# SPDX-License-Identifier: BSD-2-Clause
"""Change points of a series whose points are in one of two modes, such as a good and a bad layout of memory.

The noise is a mixture of two normal distributions. A level moves both modes, so that a point in the other mode is no
outlier and hides no step: steps are found as fast as without modes, if the modes are well apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from perfweb.stats.segmentation.noisemodels import SHORTEST, Fit, step_penalties
from perfweb.stats.segmentation.partitioning import Indices, Numbers, all_edges, best_edges

_FEWEST = 14
"""Min points for an estimate of the modes."""

_MAX_KURTOSIS = 2.6
"""Two modes have fewer points far from the mean than a normal distribution, whose kurtosis is 3."""

_MIN_DISTANCE = 2.5
"""Min distance of the modes, in deviations of one."""

_MIN_SHARE = 0.1
_PENALTY = 7.0
_ROUNDS = 12
_GRID = np.arange(-6, 6.01, 0.25)
"""Levels that are tried, in deviations of a mode."""


@dataclass(frozen=True)
class Mixture:
    """Two modes with one standard deviation."""

    means: Numbers
    shares: Numbers
    deviation: float

    @property
    def distinct(self) -> bool:
        return bool(self.shares.min() > _MIN_SHARE and self.means[1] - self.means[0] > _MIN_DISTANCE * self.deviation)


def two_modes(values: Numbers) -> Fit | None:
    """Return the best partition into levels with two modes, or None if a series does not have them.

    The score is comparable with that of `noisemodels.select`. Steps are not tested for significance.
    """
    count = len(values)
    series = (values - values.mean()) / max(float(values.std()), 1e-300)
    if count < _FEWEST or float((series**4).mean()) > _MAX_KURTOSIS:
        return None
    level, fit = np.zeros(count), None
    for _ in range(2):
        mixture = _mixture(series - level)
        if not mixture.distinct:
            return None
        score, places, level = _partition(series, mixture)
        fit = Fit(score + 2 * count * math.log(mixture.deviation) - count + _PENALTY, places)
    return fit


def _mixture(values: Numbers) -> Mixture:
    """Estimate two modes by expectation maximization (Dempster, Laird and Rubin 1977, JRSS B 39)."""
    means = np.percentile(values, [15, 85])
    shares, deviation = np.array([0.5, 0.5]), float(values.std()) / 3 + 1e-9
    for _ in range(_ROUNDS):
        likelihood = np.log(shares) - 0.5 * ((values[:, None] - means) / deviation) ** 2
        weights = np.exp(likelihood - likelihood.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        total = weights.sum(axis=0) + 1e-9
        shares = total / total.sum()
        means = (weights * values[:, None]).sum(axis=0) / total
        deviation = math.sqrt(float((weights * (values[:, None] - means) ** 2).sum()) / len(values)) + 1e-6
    return Mixture(means, shares, deviation)


def _partition(series: Numbers, mixture: Mixture) -> tuple[float, list[int], Numbers]:
    """Return the penalised cost of the best partition into levels of the grid, its places, and the level of each point.

    The density bounds the weight of outliers (Fearnhead and Rigaill 2019, "Changepoint detection in the presence of
    outliers", JASA 114).
    """
    count, grid = len(series), _GRID * mixture.deviation
    away = (series[:, None, None] - grid[:, None] - mixture.means) / mixture.deviation
    deviance = -2 * np.log(0.99 * (mixture.shares * np.exp(-0.5 * away**2)).sum(axis=2) + 0.0005)
    sums = np.concatenate([np.zeros((1, len(grid))), deviance.cumsum(axis=0)])
    penalties = np.append(0.0, step_penalties(count, range(1, count)))

    def cost(starts: Indices, end: int) -> Numbers:
        best = (sums[end] - sums[starts]).min(axis=1) + penalties[starts]
        return np.where(end - starts >= SHORTEST, best, np.inf)

    edges = np.array(best_edges(all_edges(count), cost, 0.0))
    score = float(sum(cost(edges[part : part + 1], int(edges[part + 1]))[0] for part in range(len(edges) - 1)))
    levels = grid[np.diff(sums[edges], axis=0).argmin(axis=1)]
    return score, edges[1:-1].tolist(), np.repeat(levels, np.diff(edges))
