# SPDX-License-Identifier: BSD-2-Clause
"""Finds the commit of a change among several, when each measurement has an error probability.

Between a commit before the change and one after it lie `count` commits, the last of them after it for certain: the
change came with one of them. Every measurement moves the probability of each, and the next one is where most is to be
learnt; nothing is decided for good by a single one, as it is when a noisy measurement answers yes or no to git bisect
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

LEAST_ERROR = 0.0005
"""Standard error of a measurement that is assumed at least: commits that change nothing move by so much."""

LIKELY = 0.95
"""Probability that the range of likely commits has together."""

Z = 1.96
"""Standard errors to both sides that an interval of 95 % has."""

LEAST_GAIN = 0.02
"""The min expected information of a measurement, in bits."""


@dataclass(frozen=True, slots=True)
class Observation:
    """A measurement of the commit at index `place`: by how much it differs from the commit before the change, as
    logarithm of the ratio, with its standard error.
    """

    place: int
    value: float
    error: float


@dataclass(frozen=True, slots=True)
class Bisection:
    """What is known: the most likely place with its probability, the probabilities of all, the shortest range of places
    (first and last) with LIKELY together, and the place to measure next, None if no measurement would give more
    information.
    """

    place: int
    probability: float
    probabilities: tuple[float, ...]
    first: int
    last: int
    next: int | None


def bisect(count: int, observations: Sequence[Observation], skipped: Collection[int] = ()) -> Bisection:
    """Return what observations, in any order, say about which of `count` commits made a change.

    All commits are alike before anything is measured, and so is every size of the change. `skipped` are places that
    cannot be measured; one of them can still be the one. Assumes normal errors, and that what came before and behind
    the change differs from its commit by the errors only. Raises ValueError for no commit, a place that there is not,
    or observations without one of the last place: with none behind a change nothing is known of its size.
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
    """Return what came with the commit at `place` where other commits before it moved the level, too: the step from
    the last place before it that was measured, in percent with an interval of 95 %.  None if that place does not differ
    from the level before the range, or none was measured: then all of the change is its own.
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
    """The probability of each place: Bayes' rule with a flat prior of places and of the size of the change.

    For a change at c all observations before c scatter around zero, those from c on around its size; over that is
    integrated, which for weights w gives exp(-sum w (y - mean)^2 / 2) / sqrt(sum w).
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
            # Without an observation behind the change there is no size to integrate over; all have one at the last.
    chances = np.exp(logs - logs.max())
    result: Numbers = chances / chances.sum()
    return result


def _error(seen: Observation) -> float:
    return max(seen.error, LEAST_ERROR)


def _range(chances: Numbers) -> tuple[int, int]:
    """The shortest range of places with LIKELY together."""
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
    """The place with the highest expected information, if that is enough: the mutual information of the answer
    and of whether the change came up to there, for a channel that errs as often as errors of measurement make it.
    """
    errors = np.array([_error(seen) for seen in observations]) if observations else np.array([LEAST_ERROR])
    wrong = float(special.ndtr(-_size(chances, observations) / (2 * np.median(errors))))
    reached = np.cumsum(chances)[:-1]
    heard = reached * (1 - wrong) + (1 - reached) * wrong
    gains = _entropy(heard) - _entropy(np.array([wrong]))[0]
    order = sorted((place for place in range(len(gains)) if place not in skipped), key=lambda place: -gains[place])
    return order[0] if order and gains[order[0]] >= LEAST_GAIN else None


def _size(chances: Numbers, observations: Sequence[Observation]) -> float:
    """How large the change may well be: what is behind the most likely place, and one standard error more, so that an
    unlucky first measurement does not make all others seem useless.
    """
    after = [seen for seen in observations if seen.place >= int(chances.argmax())]
    if not after:
        return 0.0
    middle, error = _level(after)
    return abs(middle) + error


def _entropy(chances: Numbers) -> Numbers:
    """In bits, of an answer that is yes with such a chance."""
    result: Numbers = (special.entr(chances) + special.entr(1 - chances)) / math.log(2)
    return result
