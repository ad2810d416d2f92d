# SPDX-License-Identifier: BSD-2-Clause
"""From two sets of samples to a verdict in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from scipy import special

from perfweb.stats.student import DEFAULT_CONFIDENCE, MINIMUM_SAMPLES, Difference, difference, percentage
from perfweb.stats.summary import Summary, summarize

POWER = 0.8
"""Chance with which an effect as large as the minimum detectable one is found, the convention since Cohen (1988)."""


class Direction(StrEnum):
    """Which way of a number is better."""

    HIGHER = "higher"
    LOWER = "lower"


class Verdict(StrEnum):
    """What may be said about two variants. Nothing here means "equal": Student's t cannot prove that."""

    FASTER = "faster"
    SLOWER = "slower"
    NO_DIFFERENCE_PROVEN = "no difference proven"
    NOT_ENOUGH_DATA = "not enough data"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The verdict on variant `b` against the baseline `a`, with everything that it rests on.

    The summaries are None for an empty set; `difference` and `detectable` are None when there is not enough data.
    `detectable` is the smallest true difference, in the unit of the samples, that this many samples with this much
    noise would have shown with a chance of 80 %.
    """

    verdict: Verdict
    direction: Direction
    confidence: float
    a: Summary | None
    b: Summary | None
    difference: Difference | None
    detectable: float | None

    @property
    def detectable_percent(self) -> float | None:
        """The minimum detectable effect in percent of the baseline's mean."""
        if self.detectable is None or self.a is None:
            return None
        return percentage(self.detectable, abs(self.a.mean))


def compare(
    a: Sequence[float], b: Sequence[float], direction: Direction | str, confidence: float = DEFAULT_CONFIDENCE
) -> Comparison:
    """Judge samples `b` against the baseline's samples `a`, both in the same unit.

    Raises ValueError for an unknown direction, an unsupported confidence level or a sample that is not finite. Too few
    samples are no error but a verdict.
    """
    return compare_summaries(
        summarize(a) if len(a) else None, summarize(b) if len(b) else None, Direction(direction), confidence
    )


def compare_summaries(
    a: Summary | None, b: Summary | None, direction: Direction, confidence: float = DEFAULT_CONFIDENCE
) -> Comparison:
    """Judge summary `b` against the baseline's summary `a`, as compare() does with the samples themselves."""
    if a is None or b is None or min(a.n, b.n) < MINIMUM_SAMPLES:
        return Comparison(Verdict.NOT_ENOUGH_DATA, direction, confidence, a, b, None, None)
    found = difference(a, b, confidence)
    return Comparison(_verdict(found, direction), direction, confidence, a, b, found, minimum_detectable(found))


def minimum_detectable(found: Difference) -> float:
    """Return the smallest true difference that the test finds with probability POWER, in the unit of the samples.

    (t of the confidence level + t of the power) times the standard error of the difference: Bloom 1995, "Minimum
    detectable effects", Evaluation Review 19(5).
    """
    return found.error + float(special.stdtrit(found.degrees_of_freedom, POWER)) * found.standard_error


def _verdict(found: Difference, direction: Direction) -> Verdict:
    if not found.proven:
        return Verdict.NO_DIFFERENCE_PROVEN
    better = (found.absolute > 0) == (direction is Direction.HIGHER)
    return Verdict.FASTER if better else Verdict.SLOWER
