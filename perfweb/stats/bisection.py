# SPDX-License-Identifier: BSD-2-Clause
"""Finds the commit of a change among several, when each measurement has an error probability.

Between a commit before the change and one after it are `count` commits, the last of them certainly after it: one of
them made the change. Every measurement updates the probability of each, and the next one is where the expected
information is highest. A single measurement decides nothing permanently, unlike a noisy yes or no for git bisect
(Ben-Or and Hassidim 2008, "The Bayesian learner is optimal for noisy binary search", FOCS; Waeber, Frazier and
Henderson 2013, "Bisection search with noisy responses", SIAM Journal on Control and Optimization 51).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from perfweb.stats.ratio import Change

Numbers = npt.NDArray[np.float64]

MIN_ERROR = 0.0005
"""Min standard error of a measurement: commits without an effect differ by that much."""

LIKELY = 0.95
"""Total probability of the range of likely commits."""

Z = 1.96
"""Standard errors to both sides of an interval of 95 %."""

MIN_GAIN = 0.02
"""The min expected information of a measurement, in bits."""


@dataclass(frozen=True, slots=True)
class Observation:
    """A measurement of the commit at index `place`: the logarithm of its ratio to the commit before the change, with
    its standard error.
    """

    place: int
    value: float
    error: float


@dataclass(frozen=True, slots=True)
class Bisection:
    """The present knowledge: the most likely place with its probability, the probabilities of all, the shortest range
    of places (first and last) with probability LIKELY, and the place to measure next, None if no measurement would give
    more information.
    """

    place: int
    probability: float
    probabilities: tuple[float, ...]
    first: int
    last: int
    next: int | None


def bisect(count: int, observations: Sequence[Observation], skipped: Collection[int] = ()) -> Bisection:
    """Return which of `count` commits made a change, from observations in any order.

    Before any measurement all commits are equally likely, and so is every size of the change. `skipped` are places that
    cannot be measured; one of them can still be the cause. Assumes normal errors, and that commits before and after the
    change differ from their neighbours by the errors only. Raises ValueError for no commit, an invalid place, or
    observations without one of the last place, because without one after the change its size is unknown.
    """
    if count < 1 or any(not 0 <= place < count for place in (*skipped, *(seen.place for seen in observations))):
        raise ValueError(f"places lie between 0 and {count - 1}")
    if observations and all(seen.place != count - 1 for seen in observations):
        raise ValueError("the last place has to be observed first")
    chances = _probabilities(count, observations)
    best = int(chances.argmax())
    first, last = _range(chances)
    place = _next(chances, observations, set(skipped))
    return Bisection(best, float(chances[best]), tuple(chances.tolist()), first, last, place)


def share(place: int, observations: Sequence[Observation]) -> Change | None:
    """Return the change by the commit at `place` if other commits before it changed the level, too: the step from the
    last measured place before it, in percent with an interval of 95 %. None if that place does not differ from the
    level before the range, or none was measured: then the whole change belongs to the commit.
    """
    before = max((seen.place for seen in observations if seen.place < place), default=None)
    behind = min((seen.place for seen in observations if seen.place >= place), default=None)
    if before is None or behind is None:
        return None
    was, was_error = _level([seen for seen in observations if seen.place == before])
    if abs(was) <= Z * was_error:
        return None
    new, new_error = _level([seen for seen in observations if seen.place == behind])
    step, error = new - was, math.hypot(was_error, new_error)
    return Change(*(100 * math.expm1(step + side * Z * error) for side in (0, -1, 1)))


def _level(observations: Sequence[Observation]) -> tuple[float, float]:
    """The mean of observations, weighted by their certainty, and its standard error."""
    weights = np.array([_error(seen) ** -2 for seen in observations])
    middle = float(np.average([seen.value for seen in observations], weights=weights))
    return middle, float(1 / math.sqrt(weights.sum()))


def _probabilities(count: int, observations: Sequence[Observation]) -> Numbers:
    """Return the probability of each place: Bayes' rule with a flat prior of places and of the size of the change.

    For a change at c all observations before c scatter around zero, and those from c on around its size. The integral
    over the size is, for weights w, exp(-sum w (y - mean)^2 / 2) / sqrt(sum w).
    """
    logs = np.zeros(count)
    for change in range(count):
        before = [seen for seen in observations if seen.place < change]
        after = [seen for seen in observations if seen.place >= change]
        logs[change] = -0.5 * sum((seen.value / _error(seen)) ** 2 for seen in before)
        if after:
            weights = np.array([_error(seen) ** -2 for seen in after])
            values = np.array([seen.value for seen in after])
            middle = float(np.average(values, weights=weights))
            logs[change] -= 0.5 * float(weights @ (values - middle) ** 2) + 0.5 * math.log(weights.sum())
            # Without an observation after the change there is no size to integrate over; all have one at the last
            # place.
    chances = np.exp(logs - logs.max())
    result: Numbers = chances / chances.sum()
    return result


def _error(seen: Observation) -> float:
    return max(seen.error, MIN_ERROR)


def _range(chances: Numbers) -> tuple[int, int]:
    """Return the shortest range of places with probability LIKELY."""
    sums = np.concatenate([[0.0], np.cumsum(chances)])
    ranges = [
        (last - first, first, last)
        for first in range(len(chances))
        for last in range(first, len(chances))
        if sums[last + 1] - sums[first] >= LIKELY - 1e-12
    ]
    _, first, last = min(ranges)
    return first, last


def _next(chances: Numbers, observations: Sequence[Observation], skipped: Collection[int]) -> int | None:
    """Return the place with the highest expected information, if that is enough: the mutual information of the answer
    and of whether the change is at or before the place, for a channel with the error rate of the measurements.
    """
    errors = np.array([_error(seen) for seen in observations]) if observations else np.array([MIN_ERROR])
    wrong = float(special.ndtr(-_size(chances, observations) / (2 * np.median(errors))))
    reached = np.cumsum(chances)[:-1]
    heard = reached * (1 - wrong) + (1 - reached) * wrong
    gains = _entropy(heard) - _entropy(np.array([wrong]))[0]
    order = sorted((place for place in range(len(gains)) if place not in skipped), key=lambda place: -gains[place])
    return order[0] if order and gains[order[0]] >= MIN_GAIN else None


def _size(chances: Numbers, observations: Sequence[Observation]) -> float:
    """Return a plausible size of the change: that at the most likely place, and one standard error more, so that an
    unlucky first measurement does not make all others seem useless.
    """
    after = [seen for seen in observations if seen.place >= int(chances.argmax())]
    if not after:
        return 0.0
    middle, error = _level(after)
    return abs(middle) + error


def _entropy(chances: Numbers) -> Numbers:
    """Return the information in bits of an answer that is yes with this probability."""
    result: Numbers = (special.entr(chances) + special.entr(1 - chances)) / math.log(2)
    return result
