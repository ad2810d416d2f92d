# SPDX-License-Identifier: BSD-2-Clause
"""Change points of a series, such as the mean of a test commit after commit.

`change_points` is used by pages: steps that explain a series better than noise with memory, a trend, a cycle, varying
scatter or two modes. `divide` finds changes of any kind by another method, as a second opinion:

    python -m perfweb.stats.changepoint NUMBERS.txt     # one number on a line, as ministat takes them
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy import ndimage

from perfweb.stats.ratio import Change, Means, change, pooled
from perfweb.stats.segmentation.covariate import shared_level, without_shared
from perfweb.stats.segmentation.noisemodels import SHORTEST, select
from perfweb.stats.segmentation.partitioning import Indices, Numbers, best_edges
from perfweb.stats.segmentation.twomodes import two_modes
from perfweb.stats.summary import checked, summarize

OUTLIER = 3.5
"""Deviations from the running median beyond which a point counts as an outlier."""

LEVEL = 95.0
"""Confidence of intervals, in percent."""

MOST_CANDIDATES = 30
"""Max number of steps that models are fitted with."""

_MEDIAN_DIFFERENCE = math.sqrt(2) * 0.674490
"""The median of |x - y| of two normal variables, in their deviation."""

_PENALTY = -1.0
_CANDIDATE = 2.0
_FEWEST_WITH_TREND = 12
_MOST_PAIRED = 200
_OUTLIER_WINDOW = 15
_SPREAD = -2 * math.log(1 - math.sqrt(LEVEL / 100))
_PERMUTATIONS = 199
_ENERGY_SIGNIFICANCE = 0.01
_MOST_DIVIDED = 2000
_ROUNDS = 2
"""Estimates of what a series and its reference have in common. The first has no steps, because a step of both would
be one of the series; the steps that it leaves improve the next.
"""


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """The level changes with the point at index `place`: `before` and `after` are the levels next to it.

    With a confidence of LEVEL the change is at one of the points from `first` to `last`, and `change` is its interval
    in percent of the level before, None if that is not above zero.
    """

    place: int
    first: int
    last: int
    before: float
    after: float
    change: Change | None


def change_points(values: Sequence[float] | Numbers, reference: Sequence[float] = ()) -> list[ChangePoint]:
    """Return the change points of a series of one unit, in order.

    Outliers are replaced, the best partitions into levels with a low penalty yield candidates, and those stay that
    the best model of noise does not explain (`noisemodels`, `twomodes`). `reference` has as many values of something
    that does not change, measured together with the points: what they have in common is subtracted first, so levels are
    those of the series without it (`covariate`). Places have the confidence set of a likelihood
    ratio (Hansen 2000, "Sample splitting and threshold estimation", Econometrica 68; 95 % are at 7.35), levels the
    interval of Fieller, as in comparisons.

    Intervals assume noise that is about normal, equal on both sides, and not correlated. They ignore that the place
    was chosen from the same numbers, and are a little too narrow for changes that are barely found. Fewer than six
    points have no change points. Raises ValueError for values that are not finite, or a reference of another length.
    """
    if len(values) < 2 * SHORTEST:
        return []
    series = checked(values)
    calm, places = _steps(series) if not len(reference) else _own_steps(series, checked(reference))
    edges = [0, *places, len(calm)]
    levels = [summarize(calm[start:end]) for start, end in pairwise(edges)]
    return [_described(calm, edges[index : index + 3], pooled(*pair)) for index, pair in enumerate(pairwise(levels))]


def _steps(series: Numbers) -> tuple[Numbers, list[int]]:
    """Return the series without its outliers, and its change points."""
    deviation = noise(series)
    calm = limited(series, deviation)
    return calm, _proven(calm, candidates(calm, deviation))


def _own_steps(series: Numbers, reference: Numbers) -> tuple[Numbers, list[int]]:
    """Return the series without its outliers and what it has in common with a reference, and its change points."""
    if len(reference) != len(series):
        raise ValueError(f"{len(series)} points have a reference of {len(reference)}")
    level, places = shared_level(reference), list[int]()
    for _ in range(_ROUNDS):
        calm, places = _steps(without_shared(series, level, places))
    return calm, places


def candidates(calm: Numbers, deviation: float) -> list[int]:
    """Return candidates, at least SHORTEST points apart: of the series, and of the series without its trend."""
    versions = [calm, _detrended(calm)] if len(calm) >= _FEWEST_WITH_TREND else [calm]
    return _strongest(calm, _apart({place for it in versions for place in partition(it, deviation, _PENALTY)}))


def _strongest(values: Numbers, places: Sequence[int]) -> list[int]:
    """Return the MOST_CANDIDATES steps that explain most squares, because the time of a selection grows with the cube
    of their number.
    """
    if len(places) <= MOST_CANDIDATES:
        return list(places)
    counts = np.diff([0, *places, len(values)])
    means = np.add.reduceat(values, [0, *places]) / counts
    explained = np.diff(means) ** 2 * counts[1:] * counts[:-1] / (counts[1:] + counts[:-1])
    return sorted(places[index] for index in np.argsort(explained)[-MOST_CANDIDATES:])


def _apart(places: Iterable[int]) -> list[int]:
    """Return places in order, without those less than SHORTEST points after the one before."""
    apart: list[int] = []
    for place in sorted(places):
        if not apart or place - apart[-1] >= SHORTEST:
            apart.append(place)
    return apart


def _detrended(values: Numbers) -> Numbers:
    """Return the series without the median of its slopes over a third of its points or more (Sen 1968, JASA 63)."""
    every = -(-len(values) // _MOST_PAIRED)
    some = values[::every]
    early, late = np.triu_indices(len(some), max(1, len(some) // 3))
    slope = np.median((some[late] - some[early]) / (late - early)) / every
    without: Numbers = values - slope * np.arange(len(values))
    return without


def _proven(calm: Numbers, places: Sequence[int]) -> list[int]:
    """Return the change points of the model that explains a series best; `places` are candidates."""
    modes = two_modes(calm)
    if not places and (modes is None or not modes.places):
        return []
    fits = [select(calm, places), *([modes] if modes else [])]
    return min(fits, key=lambda fit: fit.score).places


def noise(values: Numbers) -> float:
    """Return the standard deviation of a series around its unknown levels.

    It is the median of the absolute differences of points one, two or three apart, the max of the three, scaled to a
    normal distribution. Neither outliers nor a few change points affect it (von Neumann 1941, "Distribution of the
    ratio of the mean square successive difference to the variance", for differences; Hampel 1974 for the median). Three
    distances catch noise that lasts for some points (short series have neighbours only). It is at least the error of
    rounding.
    """
    found = (
        float(np.median(np.abs(values[lag:] - values[:-lag])))
        for lag in (1, 2, 3)
        if lag == 1 or 10 * lag < len(values)
    )
    return max(max(found, default=0.0) / _MEDIAN_DIFFERENCE, 1e-12 * float(np.abs(values).max(initial=0.0)), 1e-300)


def limited(values: Numbers, deviation: float) -> Numbers:
    """Return the series with each outlier replaced by the median of the five points around it.

    An outlier is OUTLIER deviations away from that median: of the series, or of the points around it if these scatter
    more. One or two outlying points lose their weight, a level of three or more does not (Hampel 1974, JASA 69).
    """
    middle = ndimage.median_filter(values, size=5, mode="mirror")
    around = ndimage.median_filter(np.abs(np.diff(values, append=values[-1:])), size=_OUTLIER_WINDOW, mode="mirror")
    limit = OUTLIER * np.maximum(deviation, around / _MEDIAN_DIFFERENCE)
    return np.where(np.abs(values - middle) > limit, middle, values)


def partition(values: Numbers, deviation: float, base: float) -> list[int]:
    """Return the indices at which new levels begin, in the partition that explains a series best.

    Best is the min sum of squares around the means in units of the deviation, with a penalty of `base` + 2 log n for
    each change (the penalised form of optimal partitioning is that of Killick, Fearnhead and Eckley 2012, "Optimal
    detection of changepoints with a linear computational cost", JASA 107). Only places where means over windows differ
    most are tried (Niu and Zhang 2012, "The screening and ranking algorithm", Annals of Applied Statistics 6), some
    milliseconds for thousands of points.
    """
    scaled = (values - np.median(values)) / deviation
    sums, squares = (np.concatenate([[0.0], np.cumsum(power)]) for power in (scaled, scaled**2))

    def cost(starts: Indices, end: int) -> Numbers:
        long = end - starts
        around = squares[end] - squares[starts] - (sums[end] - sums[starts]) ** 2 / long
        return np.where(long >= SHORTEST, around, np.inf)

    edges = np.array([0, *_contrasts(scaled), len(scaled)])
    return best_edges(edges, cost, base + 2 * math.log(len(scaled)))[1:-1]


def _contrasts(scaled: Numbers) -> list[int]:
    """Return indices at which the means before and after differ more than at those around: of windows of any size, and
    of all points.
    """
    count, found = len(scaled), set[int]()
    sums = np.concatenate([[0.0], np.cumsum(scaled)])
    width = SHORTEST
    while 2 * width <= count:
        inner = np.arange(width, count - width + 1)
        contrast = np.abs(sums[inner + width] - 2 * sums[inner] + sums[inner - width]) / math.sqrt(2 * width)
        peaks = (contrast >= ndimage.maximum_filter1d(contrast, width)) & (contrast > _CANDIDATE)
        found.update(inner[peaks].tolist())
        width = max(width + 1, width * 3 // 2)
    inner = np.arange(SHORTEST, count - SHORTEST + 1)
    walk = np.abs(sums - sums[-1] * np.arange(count + 1) / count)[inner] * np.sqrt(count / (inner * (count - inner)))
    peaks = (walk >= ndimage.maximum_filter1d(walk, 5)) & (walk > _CANDIDATE)
    found.update(inner[peaks].tolist())
    return sorted(found)


def _described(values: Numbers, edges: Sequence[int], found: Means) -> ChangePoint:
    """Return the change at the middle one of three edges, between the levels on both sides of it."""
    first, last = _where(values[edges[0] : edges[2]], found.pooled_deviation)
    effect = change(found, LEVEL / 100)
    return ChangePoint(edges[1], edges[0] + first, edges[0] + last, found.a.mean, found.b.mean, effect)


def _where(values: Numbers, deviation: float) -> tuple[int, int]:
    """Return the first and the last place between two levels that a likelihood ratio does not exclude."""
    count = len(values)
    split = np.arange(1, count)
    sums = np.cumsum(values - values.mean())
    # The sum of squares that a split explains; the rest is the likelihood.
    explained = sums[:-1] ** 2 / split + sums[:-1] ** 2 / (count - split)
    possible = split[explained >= explained.max() - _SPREAD * deviation**2 - 1e-12 * explained.max()]
    return int(possible[0]), int(possible[-1])


def divide(values: Sequence[float], seed: int = 1) -> list[int]:
    """Return the indices at which the distribution of a series of at most 2000 points changes.

    Hierarchical division by energy distance, each tested against 199 random orders at 1 % (Matteson and James 2014, "A
    nonparametric approach for multiple change point analysis of multivariate data", JASA 109, with exponent 1 and the
    end of the segment as the end of the second part). It assumes independent points with a mean, and no distribution;
    it also finds changes of scatter. Raises ValueError for more points, or values that are not finite.
    """
    if len(values) > _MOST_DIVIDED:
        raise ValueError(f"{len(values)} points are too many for energy distances: take the last {_MOST_DIVIDED}")
    if len(values) < 2 * SHORTEST:
        return []
    series, random = checked(values), np.random.default_rng(seed)
    places: list[int] = []
    waiting = [(0, len(series))]
    while waiting:
        start, end = waiting.pop()
        segment = series[start:end]
        if len(segment) < 2 * SHORTEST:
            continue
        distances = np.abs(segment[:, None] - segment[None, :])
        best, place = _energy(distances)
        if best <= 0:
            continue
        reached = 0
        for _ in range(_PERMUTATIONS):
            order = random.permutation(len(segment))
            reached += _energy(distances[np.ix_(order, order)])[0] >= best
            # With this many the p-value is too large, whatever the remaining orders give.
            if (reached + 1) / (_PERMUTATIONS + 1) > _ENERGY_SIGNIFICANCE:
                break
        else:
            places.append(start + place)
            waiting += [(start, start + place), (start + place, end)]
    return sorted(places)


def _energy(distances: Numbers) -> tuple[float, int]:
    """Return the max scaled energy distance between the points before and after an index, and the index."""
    count = len(distances)
    sums = distances.cumsum(axis=0).cumsum(axis=1)
    split = np.arange(SHORTEST, count - SHORTEST + 1)
    rest = count - split
    before = sums[split - 1, split - 1]
    between = sums[split - 1, -1] - before
    after = sums[-1, -1] - before - 2 * between
    found = 2 * between / (split * rest) - before / (split * (split - 1)) - after / (rest * (rest - 1))
    scaled = split * rest / count * found
    best = int(scaled.argmax())
    return float(scaled[best]), int(split[best])


def main(path: str) -> None:
    """Print the results of both methods for the numbers in a file."""
    numbers = [float(line) for line in Path(path).read_text(encoding="utf-8").split("\n") if line.strip()]
    for found in change_points(numbers):
        size = (
            f"{found.change.percent:+.2f} % ({found.change.low:+.2f} to {found.change.high:+.2f})"
            if found.change
            else ""
        )
        where = f"at {found.place + 1}, from {found.first + 1} to {found.last + 1}"
        print(f"{where}: {found.before:g} -> {found.after:g} {size}")
    print(f"energy distance: {', '.join(str(place + 1) for place in divide(numbers)) or 'no change'}")


if __name__ == "__main__":
    main(sys.argv[1])
