# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog

from perfweb.stats.shape import DIP_LEVELS, dip, dip_p, mad_outliers, modes, tukey_outliers

Array = NDArray[np.float64]

few = st.lists(
    st.integers(0, 12) | st.floats(0, 12, allow_subnormal=False).map(lambda x: round(x, 2)), min_size=2, max_size=9
)


def nearest_unimodal(points: Array, before: Array, after: Array, mode: int) -> float:
    """Return the distance of the nearest distribution with its mode at a point from the empirical one, by linear
    programming.

    The unknowns are the values at all points, twice at the mode, where the distribution may jump, and the distance. It
    is convex up to the mode and concave from there on, and never falls.
    """
    left, right = range(mode + 1), range(mode, len(points))
    places = [*left, *right]
    rows, limits = [], []

    def demand(coefficients: dict[int, float], limit: float) -> None:
        row = np.zeros(len(places) + 1)
        for column, coefficient in coefficients.items():
            row[column] += coefficient
        rows.append(row)
        limits.append(limit)

    for column, point in enumerate(places):
        is_before, is_after = column == mode, column == mode + 1
        demand({column: 1, -1: -1}, after[point] if is_after else before[point])
        demand({column: -1, -1: -1}, -(before[point] if is_before else after[point]))
    for column in range(len(places) - 1):
        demand({column: 1, column + 1: -1}, 0)
    for first, sign in ((0, 1), (mode + 1, -1)):
        columns = range(first, mode + 1 if sign > 0 else len(places))
        for one, two, three in zip(columns, columns[1:], columns[2:], strict=False):
            rise, run = points[places[two]] - points[places[one]], points[places[three]] - points[places[two]]
            demand({one: -sign / rise, two: sign / rise + sign / run, three: -sign / run}, 0)
    cost = np.zeros(len(places) + 1)
    cost[-1] = 1
    found = linprog(cost, A_ub=np.array(rows), b_ub=limits, bounds=(0, 1))
    return float(found.fun) if found.success and found.fun is not None else 1.0


@settings(max_examples=60, deadline=None)
@given(few)
def test_the_dip_is_the_distance_to_the_nearest_unimodal_distribution(samples: list[float]) -> None:
    points, counts = np.unique(np.array(samples, dtype=np.float64), return_counts=True)
    after = np.cumsum(counts) / len(samples)
    before = after - counts / len(samples)
    nearest = min(nearest_unimodal(points, before, after, mode) for mode in range(len(points)))
    assert dip(samples) == pytest.approx(max(nearest, 0.5 / len(samples)), abs=1e-9)


@given(st.lists(st.floats(-100, 100, allow_subnormal=False), min_size=1, max_size=30))
def test_the_dip_knows_neither_unit_nor_sign(samples: list[float]) -> None:
    assert dip([-4 * sample for sample in samples]) == pytest.approx(dip(samples), abs=1e-9)
    assert 0.5 / len(samples) <= dip(samples) <= 0.25 + 0.5 / len(samples)


@pytest.mark.parametrize("n", [9, 40])
def test_the_table_of_the_dip_holds_for_uniform_samples(n: int) -> None:
    random = np.random.default_rng(7)
    p = np.array([dip_p(row.tolist()) for row in random.random((1500, n))])
    for level in DIP_LEVELS[:3]:
        assert (p <= level).mean() == pytest.approx(level, abs=0.025)


def test_two_modes_are_reported() -> None:
    random = np.random.default_rng(5)
    found = modes([*random.normal(41_000, 100, 6), *random.normal(48_000, 100, 9)])
    assert found is not None
    assert found.low == pytest.approx(41_000, rel=0.01)
    assert found.high == pytest.approx(48_000, rel=0.01)
    assert found.share == pytest.approx(6 / 15)


def test_one_mode_is_seldom_reported_as_two() -> None:
    random = np.random.default_rng(6)
    assert sum(modes(random.normal(100, 1, 20).tolist()) is not None for _ in range(500)) <= 10


def test_rounding_does_not_make_modes() -> None:
    random = np.random.default_rng(8)
    assert sum(modes(random.normal(100, 2, 200).round().tolist()) is not None for _ in range(200)) <= 6


@pytest.mark.parametrize("samples", [[1.0] * 20, [1.0, 2.0], [1.0] * 4 + [9.0] * 3, [*range(100, 119), 500]])
def test_equal_few_and_outlying_samples_have_no_two_modes(samples: list[float]) -> None:
    assert modes(samples) is None


def test_outliers_are_found_by_both_rules() -> None:
    samples = [*map(float, range(100, 111)), 300.0]
    assert tukey_outliers(samples) == [11]
    assert mad_outliers(samples) == [11]


def test_the_median_absolute_deviation_stands_many_outliers() -> None:
    """A third of the samples are off: the quartiles move with them, the median does not."""
    samples = [*map(float, range(100, 108)), 300.0, 301.0, 302.0, 303.0]
    assert tukey_outliers(samples) == []
    assert mad_outliers(samples) == [8, 9, 10, 11]


def test_without_spread_there_are_no_outliers() -> None:
    assert mad_outliers([5.0, 5.0, 5.0, 6.0]) == []
    assert tukey_outliers([5.0, 5.0]) == []


def test_the_fences_of_a_published_example() -> None:
    """R 4.2, boxplot.stats(c(1:10, 50))$out is 50: its hinges are here the quartiles."""
    assert tukey_outliers([*map(float, range(1, 11)), 50.0]) == [10]
    assert list(itertools.chain(tukey_outliers(list(map(float, range(1, 12)))))) == []
