# SPDX-License-Identifier: BSD-2-Clause
"""Power: the change that a number of observations can detect, and the number that detects a change."""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy import special

POWER = 0.8
"""Probability of detecting an existing change: the convention since Cohen (1988)."""

MOST = 100_000
"""Number of observations above which more measurements do not help."""


def detectable(deviation: float, n_a: int, n_b: int, confidence: float) -> float:
    """Return the smallest true difference of two means that Student's t proves with probability POWER.

    (t of the confidence + t of the power) times the standard error of the difference: Bloom 1995, "Minimum detectable
    effects", Evaluation Review 19(5). `deviation` is the standard deviation within both sets, in the unit of the
    result; `confidence` is in percent.
    """
    freedom = n_a + n_b - 2
    t = special.stdtrit(freedom, 0.5 + confidence / 200) + special.stdtrit(freedom, POWER)
    return float(t) * deviation * math.sqrt(1 / n_a + 1 / n_b)


def power_of_t(difference: float, deviation: float, n: int, confidence: float) -> float:
    """Return the probability that Student's two-sided t proves a true difference, with `n` observations on each side.

    The noncentral t distribution (Cohen 1988, "Statistical Power Analysis", chapter 2; R's power.t.test with
    strict=TRUE). `difference` and `deviation` have the same unit; `confidence` is in percent.
    """
    freedom, shift = 2 * n - 2, difference / (deviation * math.sqrt(2 / n))
    t = float(special.stdtrit(freedom, 0.5 + confidence / 200))
    return float(1 - special.nctdtr(freedom, shift, t) + special.nctdtr(freedom, shift, -t))


def power_of_equivalence(margin: float, deviation: float, n: int, confidence: float) -> float:
    """Return the probability that two one-sided t tests prove equivalence within `margin` of two equal means.

    Schuirmann 1987, "A comparison of the two one-sided tests procedure", J. Pharmacokinetics and Biopharmaceutics 15,
    with the estimated standard error treated as the true one. `n` observations on each side; `margin` and `deviation`
    have the same unit; `confidence` is in percent, that of each of the two tests.
    """
    if deviation == 0:
        return 1.0
    freedom = 2 * n - 2
    room = margin / (deviation * math.sqrt(2 / n)) - float(special.stdtrit(freedom, confidence / 100))
    return max(0.0, 2 * float(special.stdtr(freedom, room)) - 1)


def needed_to_decide(margin: float, deviation: float, confidence: float) -> int | None:
    """Return the number of observations on each side that decides about `margin` with probability POWER, None above
    MOST.

    That many prove equivalence within the margin when there is no difference, and a difference when it is as large as
    the margin. A difference between these may stay undecided. Units as in power_of_equivalence().
    """

    def enough(n: int) -> bool:
        return (
            power_of_equivalence(margin, deviation, n, confidence) >= POWER
            and detectable(deviation, n, n, confidence) <= margin
        )

    return fewest(enough)


def fewest(enough: Callable[[int], bool]) -> int | None:
    """Return the smallest sufficient number from 2 on, None above MOST; every larger number is sufficient, too."""
    high = 2
    while not enough(high):
        if high > MOST:
            return None
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
