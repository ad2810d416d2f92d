# SPDX-License-Identifier: BSD-2-Clause
"""Against published examples, and the promised coverage by simulation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfweb.stats.twosample import bootstrap_ratio, mann_whitney, permutation_p, welch

# Hours of additional sleep with two drugs: Student 1908; R's data set `sleep`.
SLEEP_1 = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
SLEEP_2 = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
# Permeability of chorioamnion at term and at 12 to 26 weeks: Hollander and Wolfe 1973, page 69; R, help(wilcox.test).
TERM = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46]
EARLY = [1.15, 0.88, 0.90, 0.74, 1.21]

small = st.lists(st.integers(0, 9).map(float), min_size=2, max_size=5)


def test_welch_gives_what_r_gives_for_sleep() -> None:
    """R: t.test(extra ~ group) prints p-value = 0.07939 and the interval -3.3654832 0.2054832."""
    found = welch(SLEEP_2, SLEEP_1, 95)
    assert (found.low, found.high) == pytest.approx((-3.3654832, 0.2054832), abs=1e-7)
    assert found.p == pytest.approx(0.07939, abs=1e-5)
    assert found.estimate == pytest.approx(-1.58)


def test_mann_whitney_gives_what_is_printed_for_permeability() -> None:
    """The one-sided p-value is 0.1272 in R's manual; the estimate of the shift in the book is 0.305."""
    found = mann_whitney(EARLY, TERM, 95)
    assert found.p / 2 == pytest.approx(0.1272, abs=1e-4)
    assert found.estimate == pytest.approx(0.305)
    assert (found.low, found.high) == pytest.approx((-0.15, 0.76))


@pytest.mark.parametrize(("n", "m"), [(4, 5), (10, 10), (60, 60)])
def test_the_interval_of_the_shift_has_min_its_stated_coverage(n: int, m: int) -> None:
    random = np.random.default_rng(1963)
    held = 0
    for _ in range(500):
        found = mann_whitney(random.exponential(size=n).tolist(), (random.exponential(size=m) + 1).tolist(), 90)
        held += found.low <= 1 <= found.high
    assert held / 500 >= 0.86


@given(small, small)
def test_permutations_are_counted_exactly(a: list[float], b: list[float]) -> None:
    """Counted here one by one: twice the smaller share of assignments with a difference at least as large, or as
    small.
    """
    everything = np.array(a + b)
    ways = [list(way) for way in itertools.combinations(range(len(everything)), len(a))]
    differences = np.array([np.delete(everything, way).mean() - everything[way].mean() for way in ways])
    beyond = differences - (np.mean(b) - np.mean(a))
    smaller = min((beyond >= -1e-9).mean(), (beyond <= 1e-9).mean())
    assert permutation_p(a, b) == pytest.approx(min(1.0, 2 * smaller))


def test_many_permutations_are_drawn_the_same_way_every_time() -> None:
    a, b = np.random.default_rng(3).normal(100, 1, (2, 20)).tolist()
    assert permutation_p(a, b) == permutation_p(a, b)
    assert permutation_p(a, [value + 5 for value in b]) < 0.001


def test_the_bootstrap_draws_boots_whole() -> None:
    """Ten samples that are equal in each boot are one observation, not ten."""
    random = np.random.default_rng(1987)
    a, b = random.normal(100, 2, (2, 8, 1))
    alone = bootstrap_ratio(a.tolist(), b.tolist(), np.mean, 95)
    repeated = bootstrap_ratio(a.repeat(10, axis=1).tolist(), b.repeat(10, axis=1).tolist(), np.mean, 95)
    assert alone is not None
    assert repeated is not None
    assert (repeated.low, repeated.high) == pytest.approx((alone.low, alone.high))


def test_the_bootstrap_holds_the_ratio_of_medians_about_as_often_as_promised() -> None:
    random = np.random.default_rng(1979)
    held = 0
    for _ in range(20):
        a, b = random.normal(100, 3, (15, 1)).tolist(), random.normal(110, 3, (15, 1)).tolist()
        found = bootstrap_ratio(a, b, np.median, 90)
        assert found is not None
        held += found.low <= 10 <= found.high
    assert held >= 14


@pytest.mark.parametrize("a", [[[1.0]] * 4, [[-1.0], [-2.0], [-3.0], [-4.0], [-5.0]], [[5.0]] * 5])
def test_no_bootstrap_of_few_negative_or_equal_boots(a: list[list[float]]) -> None:
    assert bootstrap_ratio(a, [[5.0]] * 5, np.mean, 95) is None


def test_one_observation_is_too_few() -> None:
    for test in (welch, mann_whitney):
        with pytest.raises(ValueError, match="1 and 2 observations"):
            test([1.0], [1.0, 2.0], 95)
