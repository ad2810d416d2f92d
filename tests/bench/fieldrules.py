# SPDX-License-Identifier: BSD-2-Clause
"""The simple rules by which many projects look for regressions in a series, to measure ours beside.

Each returns the indices at which it tells a change; what it tells of neighbouring points is one alarm.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from scipy import stats

PERCENT = 5.0
HISTORY = 10
SIGMAS = 3.0
AFTER = 5
SIGNIFICANCE = 0.01
QUARTILES = 20
TOGETHER = 5
"""Points within which alarms are one."""


def percentage(values: Sequence[float]) -> list[int]:
    """A point differs from the one before it by more than a fixed percentage."""
    return _alarms(
        place for place in range(1, len(values)) if abs(values[place] / values[place - 1] - 1) > PERCENT / 100
    )


def three_sigma(values: Sequence[float]) -> list[int]:
    """A point lies more than three standard deviations from the mean of the ten before it."""
    found = []
    for place in range(HISTORY, len(values)):
        past = np.asarray(values[place - HISTORY : place])
        if abs(values[place] - past.mean()) > SIGMAS * past.std(ddof=1):
            found.append(place)
    return _alarms(found)


def mann_whitney(values: Sequence[float]) -> list[int]:
    """The five newest points are distributed otherwise than the ten before them (Mann-Whitney's U at 1 %)."""
    found = []
    for place in range(HISTORY, len(values) - AFTER + 1):
        past, new = values[place - HISTORY : place], values[place : place + AFTER]
        if stats.mannwhitneyu(past, new).pvalue < SIGNIFICANCE:
            found.append(place)
    return _alarms(found)


def quartiles(values: Sequence[float]) -> list[int]:
    """A point lies outside the fence of the twenty before it: 1.5 interquartile ranges off (Tukey 1977)."""
    found = []
    for place in range(QUARTILES, len(values)):
        low, high = np.percentile(values[place - QUARTILES : place], [25, 75])
        if not low - 1.5 * (high - low) <= values[place] <= high + 1.5 * (high - low):
            found.append(place)
    return _alarms(found)


def _alarms(places: Iterable[int]) -> list[int]:
    """The first of each group of places that follow each other closely."""
    alarms: list[int] = []
    last = -TOGETHER - 1
    for place in places:
        if place - last > TOGETHER:
            alarms.append(place)
        last = place
    return alarms
