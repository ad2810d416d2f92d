# SPDX-License-Identifier: BSD-2-Clause
"""Variance components of nested random effects, such as layouts and boots."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perfweb.stats.summary import checked

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Component:
    """One source of variance: its name, mean square and degrees of freedom in the analysis, and the estimate.

    `variance` has the square of the samples' unit and is never negative; `share` is its part of all variance.
    """

    name: str
    mean_square: float
    degrees_of_freedom: int
    variance: float
    share: float


def variance_components(
    samples: Sequence[float], fixed: Sequence[Hashable], factors: Mapping[str, Sequence[Hashable]]
) -> list[Component]:
    """Split the variance of samples among nested random factors and the samples themselves.

    `fixed` is the group of each sample whose mean is a free parameter (its variant). `factors` gives the unit of each
    sample at each level, outermost first, for example {"layouts": ..., "boots": ...}: a unit's name needs to be unique
    only within the unit that contains it. Numbers may be unequal. The last component, "samples", is the rest.

    Mean squares are equated to their expectations (Searle, Casella and McCulloch 1992, "Variance Components", chapter
    5), whose coefficients come from Hartley's synthesis (1967, "Expectations, variances and covariances of ANOVA mean
    squares by synthesis", Biometrics 23). A negative estimate is zero, and its mean square is pooled with the next; for
    balanced data that is the REML estimate (there, chapter 4). Samples need not be normal.

    Raises ValueError for lists of different lengths or a factor without two units in any of the units that contain it.
    """
    values = checked(samples)
    if any(len(labels) != len(values) for labels in (fixed, *factors.values())):
        raise ValueError("every sample needs its group and its unit in every factor")
    nested = [*_nest([fixed, *factors.values()]), np.arange(len(values))]
    names = [*factors, "samples"]
    counts = [len(np.unique(level)) for level in nested]
    freedom = [below - above for above, below in itertools.pairwise(counts)]
    if missing := [name for name, degrees in zip(names, freedom, strict=True) if degrees < 1]:
        raise ValueError(f"the variance of {missing[0]} cannot be computed: measure more of them")
    squares = _mean_squares(values, nested, freedom)
    expected = np.array([_expectation(nested, freedom, level) for level in nested[1:]]).T
    variances = _solve(expected, squares.copy(), freedom)
    total = sum(variances) or 1.0
    return [
        Component(name, float(square), degrees, float(variance), float(variance / total))
        for name, square, degrees, variance in zip(names, squares, freedom, variances, strict=True)
    ]


def _nest(levels: Sequence[Sequence[Hashable]]) -> list[NDArray[np.intp]]:
    """Number the units of each level, distinguishing equal names in different units of the level above."""
    numbered = []
    paths: list[tuple[Hashable, ...]] = [()] * len(levels[0])
    for labels in levels:
        paths = [(*path, label) for path, label in zip(paths, labels, strict=True)]
        numbers: dict[tuple[Hashable, ...], int] = {}
        numbered.append(np.array([numbers.setdefault(path, len(numbers)) for path in paths]))
    return numbered


def _means(values: Array, level: NDArray[np.intp]) -> Array:
    """Replace each value by the mean of its unit."""
    sums: Array = np.bincount(level, values) / np.bincount(level)
    return sums[level]


def _mean_squares(values: Array, nested: Sequence[NDArray[np.intp]], freedom: Sequence[int]) -> Array:
    means = [_means(values, level) for level in nested]
    squares = [((inner - outer) ** 2).sum() for outer, inner in itertools.pairwise(means)]
    result: Array = np.array(squares) / np.array(freedom)
    return result


def _expectation(nested: Sequence[NDArray[np.intp]], freedom: Sequence[int], level: NDArray[np.intp]) -> Array:
    """Return the coefficient of a level's variance in each mean square: the sum over its units' indicators."""
    total: Array = np.zeros(len(freedom))
    for unit in np.unique(level):
        total += _mean_squares((level == unit).astype(np.float64), nested, freedom)
    return total


def _solve(expected: Array, squares: Array, freedom: Sequence[int]) -> list[float]:
    """Equate mean squares to their expectations; a negative variance is set to zero.

    Its mean square then estimates the same as the next inner one, and both are pooled.
    """
    weights = np.array(freedom, dtype=np.float64)
    kept = list(range(len(squares)))
    while True:
        found = np.linalg.solve(expected, squares)
        negative = np.flatnonzero(found[:-1] < 0)
        if not negative.size:
            break
        place = int(negative[0])
        both = weights[place : place + 2]
        squares[place + 1] = np.average(squares[place : place + 2], weights=both)
        expected[place + 1] = np.average(expected[place : place + 2], axis=0, weights=both)
        weights[place + 1] = both.sum()
        squares, weights = np.delete(squares, place), np.delete(weights, place)
        expected = np.delete(np.delete(expected, place, axis=0), place, axis=1)
        kept.pop(place)
    variances = dict(zip(kept, found, strict=True))
    return [float(variances.get(place, 0.0)) for place in range(len(freedom))]
