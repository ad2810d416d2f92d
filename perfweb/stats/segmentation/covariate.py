# SPDX-License-Identifier: BSD-2-Clause
"""The noise that a series has in common with a reference: a program that does not change, measured in the same runs.

The level of the reference shows what the machine did (drift, cycles, a random walk), which is then subtracted from the
series. A step of the reference is one of the machine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import linalg

from perfweb.stats.segmentation.partitioning import Numbers

_LEVELS = [
    (memory, share) for memory in (0.3, 0.5, 0.7, 0.9, 0.97, 0.995) for share in (0.3, 0.5, 0.7, 0.9, 0.99, 0.999)
]
"""AR(1) levels that are tried: their coefficient, and their share of the variance; the rest is white noise."""

_PENALTY = 3.0
_MOST_WEIGHT = 1.2
"""Max change of the series, in percent, for one percent of the reference's level."""


def shared_level(reference: Numbers) -> Numbers:
    """Return the level of a reference at each point, as a share of its mean, without the noise of single points.

    It is the smoothed state of an AR(1) level in white noise, with the most likely of _LEVELS (Harvey 1989,
    "Forecasting, structural time series models and the Kalman filter"), and zero if white noise explains the reference
    as well. Time is linear in the number of points.
    """
    relative = reference / (reference.mean() or 1.0) - 1
    count = len(relative)
    best, level = (count - 1) * math.log(max(float(relative.var(ddof=1)), 1e-300)) + math.log(count), np.zeros(count)
    for memory, share in _LEVELS:
        score, found = _smoothed(relative, memory, share)
        if score + _PENALTY < best:
            best, level = score + _PENALTY, found
    return level


def _smoothed(values: Numbers, memory: float, share: float) -> tuple[float, Numbers]:
    """Return -2 log of the restricted likelihood of an AR(1) level in white noise, and the smoothed level.

    The inverse of the covariance of the level has three diagonals (Rue and Held 2005, "Gaussian Markov random fields").
    """
    count, white = len(values), 1 - share
    scale = share * (1 - memory**2)
    bands = np.full((2, count), -memory / scale)
    bands[1] = (1 + memory**2) / scale + 1 / white
    bands[1, [0, -1]] = 1 / scale + 1 / white
    factor = linalg.cholesky_banded(bands)
    columns = np.column_stack([np.ones(count), values])
    solved = linalg.cho_solve_banded((factor, False), columns) / white
    products = columns.T @ (columns - solved) / white
    mean = products[0, 1] / products[0, 0]
    variance = max((products[1, 1] - mean * products[0, 1]) / (count - 1), 1e-300)
    determinant = 2 * np.log(factor[1]).sum() + math.log(share) + (count - 1) * math.log(scale)
    score = (count - 1) * math.log(variance) + determinant + count * math.log(white) + math.log(products[0, 0])
    level: Numbers = solved[:, 1] - mean * solved[:, 0]
    return float(score), level


def without_shared(values: Numbers, level: Numbers, places: Sequence[int]) -> Numbers:
    """Return a series with steps at `places` without the part that follows the level of its reference.

    The weight of the level is estimated by least squares together with the steps, and is not below zero.
    """
    steps = np.arange(len(values))[:, None] >= np.asarray(places, dtype=np.int64)
    design = np.column_stack([level, np.ones(len(values)), steps])
    weight = float(np.linalg.lstsq(design, values, rcond=None)[0][0])
    found: Numbers = values - min(max(weight, 0.0), _MOST_WEIGHT * abs(float(values.mean()))) * level
    return found
