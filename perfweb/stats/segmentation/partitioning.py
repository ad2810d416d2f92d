# SPDX-License-Identifier: BSD-2-Clause
"""Optimal partitioning: the best segments of a series, if the costs of segments add up."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

MOST_EDGES = 250
"""Max number of edges that are tried in a long series, which limits the time."""


def all_edges(count: int) -> Indices:
    """Return every edge of a series with that many points, or every second, third, ... edge of a long one."""
    return np.append(np.arange(0, count, -(-count // MOST_EDGES)), count)


def best_edges(edges: Indices, cost: Callable[[Indices, int], Numbers], penalty: float) -> list[int]:
    """Return the edges of the partition with the min sum of costs, and a penalty for each edge between two segments.

    `edges` are the possible edges in order, with both ends of the series, which the result has as well. `cost(starts,
    end)` are the costs of the segments from each of `starts` to `end`, infinite for those that are not allowed. Time is
    quadratic in the number of edges (Jackson and others 2005, "An algorithm for optimal partitioning of data on an
    interval", IEEE Signal Processing Letters 12).
    """
    best, origin = np.full(len(edges), np.inf), np.zeros(len(edges), dtype=np.int64)
    best[0] = -penalty
    for index in range(1, len(edges)):
        total = best[:index] + cost(edges[:index], int(edges[index])) + penalty
        origin[index] = start = int(total.argmin())
        best[index] = total[start]
    found = [len(edges) - 1]
    while found[-1] > 0:
        found.append(int(origin[found[-1]]))
    return [int(edges[index]) for index in reversed(found)]
