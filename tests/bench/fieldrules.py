# SPDX-License-Identifier: BSD-2-Clause
"""The rules of other projects for regressions in a series, for comparison with those of the service.

Each returns the indices of all points at which it reports a change.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence

import numpy as np
from scipy import stats

PERCENT = 5.0
HISTORY = 10
SIGMAS = 3.0
AFTER = 5
SIGNIFICANCE = 0.01
QUARTILES = 20


def percentage(values: Sequence[float]) -> list[int]:
    """A point differs from the one before it by more than a fixed percentage."""
    return [place for place in range(1, len(values)) if abs(values[place] / values[place - 1] - 1) > PERCENT / 100]


def three_sigma(values: Sequence[float]) -> list[int]:
    """A point lies more than three standard deviations from the mean of the ten before it."""
    found = []
    for place in range(HISTORY, len(values)):
        past = np.asarray(values[place - HISTORY : place])
        if abs(values[place] - past.mean()) > SIGMAS * past.std(ddof=1):
            found.append(place)
    return found


def mann_whitney(values: Sequence[float]) -> list[int]:
    """The five newest points are distributed differently from the ten before them (Mann-Whitney's U at 1 %)."""
    if len(values) < HISTORY + AFTER:
        return []
    windows = np.lib.stride_tricks.sliding_window_view(np.asarray(values), HISTORY + AFTER)
    past, new = windows[:, :HISTORY], windows[:, HISTORY:]
    different = stats.mannwhitneyu(past, new, axis=1, method="asymptotic").pvalue < SIGNIFICANCE
    return [HISTORY + int(place) for place in np.flatnonzero(different)]


def quartiles(values: Sequence[float]) -> list[int]:
    """A point lies outside the fence of the twenty before it: 1.5 interquartile ranges off (Tukey 1977)."""
    found = []
    for place in range(QUARTILES, len(values)):
        low, high = np.percentile(values[place - QUARTILES : place], [25, 75])
        if not low - 1.5 * (high - low) <= values[place] <= high + 1.5 * (high - low):
            found.append(place)
    return found


def otava(values: Sequence[float]) -> list[int]:
    """Apache Otava, if installed, finds a change point with its defaults (Fleming and others 2023, "Hunter: Using
    change point detection to hunt for performance regressions", ICPE).
    """
    found, _weak = importlib.import_module("otava.analysis").compute_change_points(list(values))
    return [int(point.index) for point in found]
