# SPDX-License-Identifier: BSD-2-Clause
"""The shape of one set of samples: outliers, and whether it has one mode or two.

Outliers are reported and never dropped, because the machine will produce them again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from perfweb.stats.summary import checked

Array = NDArray[np.float64]

FENCE = 1.5
"""Interquartile ranges between the quartiles and Tukey's fences."""

MODIFIED_Z = 3.5
"""Distance from the median of an outlier, in deviations estimated from the median absolute deviation."""

DIP_LEVELS = (0.1, 0.05, 0.01, 0.005, 0.001)
"""Significance levels for which critical points of the dip are stored."""

MODES_SIGNIFICANCE = 0.01
"""The false positive rate of two modes; for most distributions it is far smaller."""

# Critical points of sqrt(n) * dip of n uniform samples, which of all distributions with one mode are the most likely to
# seem bimodal, by n and for each of DIP_LEVELS: simulated with 5000 (n = 200) to 40 000 (n = 8) sets each.
_DIP_POINTS = {
    8: (0.4027, 0.4355, 0.4888, 0.5066, 0.5531),
    10: (0.4140, 0.4422, 0.5024, 0.5278, 0.5709),
    15: (0.4266, 0.4603, 0.5291, 0.5517, 0.6080),
    20: (0.4350, 0.4719, 0.5422, 0.5664, 0.6187),
    30: (0.4462, 0.4850, 0.5581, 0.5859, 0.6341),
    50: (0.4567, 0.4952, 0.5756, 0.6014, 0.6783),
    100: (0.4750, 0.5134, 0.5930, 0.6202, 0.6821),
    200: (0.4864, 0.5265, 0.6014, 0.6441, 0.7233),
}


@dataclass(frozen=True, slots=True)
class Modes:
    """Two values around which samples gather: the mean of each group, lower first, and the share of the lower one."""

    low: float
    high: float
    share: float

    @property
    def apart(self) -> float:
        """The distance between the modes, in percent of the lower one; infinite when that is not above zero."""
        return 100 * (self.high - self.low) / self.low if self.low > 0 else math.inf


def tukey_outliers(samples: Sequence[float]) -> list[int]:
    """Return the indices of samples beyond the fences at FENCE interquartile ranges outside the quartiles.

    Tukey 1977, "Exploratory Data Analysis"; quartiles interpolate linearly between samples. Raises ValueError for an
    empty set and for values that are not finite.
    """
    values = checked(samples)
    lower, upper = np.quantile(values, [0.25, 0.75])
    reach = FENCE * (upper - lower)
    return np.flatnonzero((values < lower - reach) | (values > upper + reach)).tolist()


def mad_outliers(samples: Sequence[float]) -> list[int]:
    """Return the indices of samples whose modified z score is beyond MODIFIED_Z.

    The score is 0.6745 * (sample - median) / median absolute deviation: Iglewicz and Hoaglin 1993, "How to Detect and
    Handle Outliers". It is robust against outliers in almost half of the samples. If that deviation is zero, none is
    found. Raises ValueError for an empty set and for values that are not finite.
    """
    values = checked(samples)
    distances = np.abs(values - np.median(values))
    deviation = np.median(distances)
    if deviation == 0:
        return []
    return np.flatnonzero(0.6745 * distances / deviation > MODIFIED_Z).tolist()


def dip(samples: Sequence[float]) -> float:
    """Return the distance of the samples' distribution from the nearest one with a single mode, between 1/(2n) and 1/4.

    Hartigan and Hartigan 1985, "The dip test of unimodality", Annals of Statistics 13: half the largest distance that
    is left between the empirical distribution and a function that is convex up to a modal interval and concave after
    it, while that interval shrinks. Raises ValueError for no samples and such as are not finite.
    """
    points, counts = np.unique(checked(samples), return_counts=True)
    after = np.cumsum(counts).astype(np.float64)
    before = after - counts
    first, last, largest = 0, len(points) - 1, 1.0
    while first < last:
        x = points[first : last + 1]
        lower, upper = before[first : last + 1], after[first : last + 1]
        convex, concave = _hull(x, lower), _hull(x, -upper)
        below = np.interp(x, x[convex], lower[convex])
        above = np.interp(x, x[concave], upper[concave])
        corners = np.union1d(convex, concave)
        widest = corners[np.argmax((above - below)[corners])]
        if above[widest] - below[widest] <= largest:
            break
        left = convex[convex <= widest][-1]
        right = concave[concave >= widest][0]
        if (left, right) == (0, len(x) - 1):
            break
        largest = max(largest, (upper - below)[:left].max(initial=0), (above - lower)[right + 1 :].max(initial=0))
        first, last = first + left, first + right
    return float(largest / (2 * after[-1]))


def dip_p(samples: Sequence[float]) -> float:
    """Return a bound for the p-value of the dip, one of DIP_LEVELS or 1; the null hypothesis is a single mode.

    The hypothesis is represented by a uniform distribution, as Hartigan and Hartigan do. Fewer than eight samples give
    1, because two values can then always be two modes by chance.
    """
    n = len(samples)
    if n < min(_DIP_POINTS):
        return 1.0
    seen = math.sqrt(n) * dip(samples)
    return min((level for level, point in zip(DIP_LEVELS, _dip_points(n), strict=True) if seen > point), default=1.0)


@cache
def _dip_points(n: int) -> list[float]:
    """Interpolate the critical points of the dip for n samples."""
    sizes = np.log(list(_DIP_POINTS))
    return [float(np.interp(math.log(n), sizes, column)) for column in zip(*_DIP_POINTS.values(), strict=True)]


def modes(samples: Sequence[float]) -> Modes | None:
    """Return the two modes of samples, or None if a single mode explains them.

    The dip decides that there are two; they are the means of the two groups whose sum of squares is the smallest
    (Fisher 1958, "On grouping for maximum homogeneity", JASA 53). Equal samples are treated as rounded ones.
    """
    values = _unrounded(np.sort(checked(samples)))
    if dip_p(values.tolist()) > MODES_SIGNIFICANCE:
        return None
    sizes = np.arange(1, len(values))
    sums = np.cumsum(values - values.mean())[:-1]
    between = sums * sums * (1 / sizes + 1 / sizes[::-1])
    split = int(np.argmax(between)) + 1
    return Modes(float(values[:split].mean()), float(values[split:].mean()), split / len(values))


def _unrounded(values: Array) -> Array:
    """Spread equal values evenly over the smallest step between different ones; `values` ascend.

    Otherwise every value that occurs several times would be a mode by itself.
    """
    points, counts = np.unique(values, return_counts=True)
    if len(points) in {1, len(values)}:
        return values
    step = np.diff(points).min()
    places = np.concatenate([(np.arange(count) + 0.5) / count - 0.5 for count in counts])
    spread: Array = values + step * places
    return spread


def _hull(x: Array, y: Array) -> NDArray[np.intp]:
    """Return the indices of the corners of the largest convex function below the points (x, y), x ascending.

    Andrew 1979, "Another efficient algorithm for convex hulls in two dimensions": its lower half.
    """
    corners: list[int] = []
    xs, ys = x.tolist(), y.tolist()  # one by one, Python numbers are several times as fast
    for index in range(len(xs)):
        while len(corners) > 1:
            one, two = corners[-2], corners[-1]
            if (ys[two] - ys[one]) * (xs[index] - xs[two]) < (ys[index] - ys[two]) * (xs[two] - xs[one]):
                break
            corners.pop()
        corners.append(index)
    return np.array(corners)
