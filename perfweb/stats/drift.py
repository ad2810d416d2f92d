# SPDX-License-Identifier: BSD-2-Clause
"""The drift of a testbed during a run, from the boots of one variant: the sentinel.

Computed on logarithms of the means of its boots, and reported in percent. The order of boots in the input does not
matter, only their times. docs/explanation/statistics.md describes how pages use it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean

import numpy as np
from scipy import special

from perfweb.stats.design.allocation import Noise
from perfweb.stats.ratio import Change
from perfweb.stats.student import DEFAULT_CONFIDENCE

FEWEST_BOOTS = 5
"""Four numbers rise by chance in one of 24 orders, so no interval of them has 95 %."""

_MOST_EXACT = 60
"""Max number for which all orders are counted; the normal distribution is as good with more."""


@dataclass(frozen=True, slots=True)
class Watched:
    """A boot with the time at which a test was measured on it, in seconds, and the samples, positive, in any unit."""

    at: float
    samples: tuple[float, ...]

    @property
    def level(self) -> float:
        """The logarithm of its mean."""
        return math.log(fmean(self.samples))


@dataclass(frozen=True, slots=True)
class Drift:
    """The drift of a sentinel in percent: `total` from the first of that many boots to the last, along the best
    straight line, with an `interval` if there are enough boots, and the largest `step` between consecutive boots.
    `explained` is the largest step of noise in 95 of 100 runs, None if unknown.
    """

    boots: int
    total: float
    interval: Change | None
    step: float
    explained: float | None

    @property
    def proven(self) -> bool:
        """Whether a drift is proven."""
        return self.interval is not None and self.interval.leaves_out_zero

    @property
    def unsteady(self) -> bool:
        """Whether a step is larger than noise explains."""
        return self.explained is not None and abs(self.step) > self.explained


def drift(boots: Sequence[Watched], noise: Noise | None = None, confidence: float = DEFAULT_CONFIDENCE) -> Drift | None:
    """Return the drift of a sentinel; None for fewer than two boots, or boots at one time.

    The line is that of Theil and Sen, the median of the slopes of all pairs, which no single boot changes much; its
    interval is that of Kendall's rank correlation (Sen 1968, "Estimates of the regression coefficient based on
    Kendall's tau", JASA 63). It assumes that boots scatter equally and independently, without a distribution: without a
    drift it excludes zero in at most 1 - confidence of all runs.

    `noise` of a calibration explains steps. Without it the samples of the boots do, and further scatter of boots counts
    as movement. The largest of several steps is judged (Sidak 1967, "Rectangular confidence regions for the means of
    multivariate normal distributions", JASA 62).
    """
    ordered = sorted(boots, key=lambda boot: boot.at)
    if len(ordered) < 2 or ordered[0].at == ordered[-1].at:
        return None
    times, levels = (np.array(values) for values in zip(*((boot.at, boot.level) for boot in ordered), strict=True))
    first, second = np.triu_indices(len(ordered), 1)
    apart = times[second] - times[first]
    slopes = np.sort((levels[second] - levels[first])[apart > 0] / apart[apart > 0])
    length = float(times[-1] - times[0])
    total = _percent(float(np.median(slopes)) * length)
    place = _rank(len(ordered), confidence)
    interval = None
    if place is not None and len(slopes) > 2 * place:
        low, high = slopes[place], slopes[-1 - place]
        interval = Change(total, _percent(float(low) * length), _percent(float(high) * length))
    step = max(np.diff(levels).tolist(), key=abs)
    return Drift(len(ordered), total, interval, _percent(step), _explained(ordered, noise, confidence))


def lean(sentinel: Sequence[Watched], a: Sequence[Watched], b: Sequence[Watched]) -> float | None:
    """Return how much higher the sentinel was, in percent, at the times of the boots `b` than at those of `a`.

    The drift alone would make that difference between two equal variants: their boots are bracketed by those of the
    sentinel, which is interpolated linearly, as a mass spectrometer's samples are by a standard (Albarède and Beard
    2004, "Analytical methods for non-traditional isotopes", Rev. Mineral. Geochem. 55). None without two boots of the
    sentinel and one of each variant.
    """
    if len(sentinel) < 2 or not a or not b:
        return None
    ordered = sorted(sentinel, key=lambda boot: boot.at)
    times, levels = [boot.at for boot in ordered], [boot.level for boot in ordered]
    of_a, of_b = (float(np.interp([boot.at for boot in side], times, levels).mean()) for side in (a, b))
    return _percent(of_b - of_a)


def _percent(logarithm: float) -> float:
    return 100 * math.expm1(logarithm)


def _rank(count: int, confidence: float) -> int | None:
    """Return the number of slopes outside the interval at either end; None if there are too few slopes."""
    tail = (1 - confidence / 100) / 2
    if count > _MOST_EXACT:
        pairs = count * (count - 1) / 2
        deviation = math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
        # Kendall's statistic counts pairs in order minus pairs in the wrong order.
        return max(0, math.floor((pairs + special.ndtri(tail) * deviation) / 2) - 1)
    place = int(np.searchsorted(_disorder(count), tail, side="right"))
    return place - 1 if place else None


@lru_cache(maxsize=_MOST_EXACT)
def _disorder(count: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the share of all orders of that many numbers with at most 0, 1, 2 … pairs in the wrong order (Kendall
    1938).
    """
    shares = np.ones(1)
    for size in range(2, count + 1):
        shares = np.convolve(shares, np.full(size, 1 / size))
    return np.cumsum(shares)


def _explained(boots: Sequence[Watched], noise: Noise | None, confidence: float) -> float | None:
    """Return the largest step between neighbours that noise makes in this percentage of runs."""
    tail = (1 - (confidence / 100) ** (1 / (len(boots) - 1))) / 2
    share = fmean(1 / len(boot.samples) for boot in boots)
    if noise is not None:
        deviation = math.hypot(noise.boots, noise.samples * math.sqrt(share)) / 100
        return _percent(-float(special.ndtri(tail)) * deviation * math.sqrt(2))
    freedom = sum(len(boot.samples) - 1 for boot in boots)
    if freedom == 0:
        return None
    squares = sum(float(np.var(np.log(boot.samples))) * len(boot.samples) for boot in boots)
    deviation = math.sqrt(squares / freedom * share)
    return _percent(-float(special.stdtrit(freedom, tail)) * deviation * math.sqrt(2))
