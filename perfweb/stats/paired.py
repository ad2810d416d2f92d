# SPDX-License-Identifier: BSD-2-Clause
"""The ratio of measurements in pairs, taken one after the other, so that a drift of the machine affects both.

Logarithms of ratios are treated as independent and nearly normal, and their mean has Student's t interval: the
geometric mean of ratios does not depend on the choice of the baseline (Fleming and Wallace 1986, "How not to lie with
statistics", CACM 29(3)). The pairs are the replicates, as Kalibera and Jones 2013, "Rigorous benchmarking in reasonable
time", require: repetitions within a boot are no replicates of the boot.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import special

from perfweb.stats.design.power import POWER, fewest
from perfweb.stats.ratio import Change


def paired_change(pairs: Sequence[tuple[float, float]], coverage: float) -> Change:
    """Return b / a of pairs (a, b) as a change in percent, with an interval of `coverage` (between 0 and 1).

    Raises ValueError for fewer than two pairs, and for a value that is not positive and finite.
    """
    mean, error, freedom = _logarithm(pairs)
    reach = float(special.stdtrit(freedom, (1 + coverage) / 2)) * error
    return Change(*(100 * math.expm1(bound) for bound in (mean, mean - reach, mean + reach)))


def detectable_change(pairs: Sequence[tuple[float, float]], coverage: float) -> float:
    """Return the smallest true change, in percent, that this many such pairs prove with probability POWER.

    (t of the coverage + t of the power) times the standard error, as `detectable` in design.power for two sets.
    """
    _, error, freedom = _logarithm(pairs)
    t = special.stdtrit(freedom, (1 + coverage) / 2) + special.stdtrit(freedom, POWER)
    return 100 * math.expm1(float(t) * error)


def paired_p(pairs: Sequence[tuple[float, float]]) -> float:
    """Return the two-sided p-value of Student's t for such pairs without a change."""
    mean, error, freedom = _logarithm(pairs)
    if error == 0:
        return 0.0 if mean else 1.0
    return float(2 * special.stdtr(freedom, -abs(mean) / error))


def pairs_needed(pairs: Sequence[tuple[float, float]], percent: float, coverage: float) -> int | None:
    """Return the number of pairs with this scatter that would prove a change of `percent` with probability POWER, and
    no change to be within it; None above power.MOST.
    """
    _, error, _ = _logarithm(pairs)
    deviation, room = error * math.sqrt(len(pairs)), math.log1p(percent / 100)

    def enough(n: int) -> bool:
        t = float(special.stdtrit(n - 1, (1 + coverage) / 2) + special.stdtrit(n - 1, (1 + POWER) / 2))
        return t * deviation / math.sqrt(n) <= room

    return fewest(enough)


def _logarithm(pairs: Sequence[tuple[float, float]]) -> tuple[float, float, int]:
    """The mean of the ratios' logarithms, its standard error and its degrees of freedom."""
    if len(pairs) < 2:
        raise ValueError(f"{len(pairs)} pairs: an interval needs two or more")
    if not all(math.isfinite(value) and value > 0 for pair in pairs for value in pair):
        raise ValueError("ratios need positive, finite values on both sides of each pair")
    ratios = np.log([b / a for a, b in pairs])
    return float(ratios.mean()), float(ratios.std(ddof=1)) / math.sqrt(len(ratios)), len(ratios) - 1
