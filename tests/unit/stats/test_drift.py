# SPDX-License-Identifier: BSD-2-Clause
"""The drift of a sentinel: none without drift, and the planted one."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfweb.stats.design.allocation import Noise
from perfweb.stats.drift import FEWEST_BOOTS, Drift, Watched, drift, lean

PERCENTS = st.floats(-20, 20)
LEVELS = st.lists(st.floats(-0.2, 0.2), min_size=FEWEST_BOOTS, max_size=12)


def at_levels(levels: Sequence[float]) -> list[Watched]:
    """A boot each minute, with these logarithms."""
    return [Watched(60.0 * place, (math.exp(level),)) for place, level in enumerate(levels)]


def drift_of(boots: Sequence[Watched], noise: Noise | None = None) -> Drift:
    found = drift(boots, noise)
    assert found is not None
    return found


@pytest.mark.parametrize(("count", "wrong"), [(5, 2), (6, 12), (7, 152)])
def test_without_a_drift_the_interval_excludes_zero_at_the_stated_rate(count: int, wrong: int) -> None:
    """The share of all orders, by Kendall's distribution, whatever the numbers are: at most five of a hundred."""
    orders = list(itertools.permutations(0.01 * 1.7**place for place in range(count)))
    assert sum(drift_of(at_levels(order)).proven for order in orders) == wrong
    assert wrong <= 0.05 * len(orders)


def test_it_is_as_seldom_with_orders_too_many_to_count_and_outliers() -> None:
    rng = np.random.default_rng(1)
    wrong = sum(drift_of(at_levels((0.01 * rng.standard_t(3, 70)).tolist())).proven for _ in range(300))
    assert 0.01 <= wrong / 300 <= 0.08


@given(PERCENTS, st.integers(FEWEST_BOOTS, 20), st.data())
def test_a_planted_drift_is_found_although_one_boot_is_far_off(planted: float, count: int, data: st.DataObject) -> None:
    levels = [math.log1p(planted / 100) * place / (count - 1) for place in range(count)]
    levels[data.draw(st.integers(0, count - 1))] += data.draw(st.floats(-1, 1))
    found = drift_of(at_levels(levels))
    assert found.total == pytest.approx(planted, abs=1e-6)
    assert found.interval is not None
    assert found.interval.low - 1e-6 <= planted <= found.interval.high + 1e-6


@given(LEVELS, st.randoms(use_true_random=False))
def test_the_order_of_the_input_makes_no_difference(levels: list[float], rng: random.Random) -> None:
    boots = at_levels(levels)
    shuffled = rng.sample(boots, len(boots))
    assert drift(boots) == drift(shuffled)
    assert lean(boots, boots[:2], boots[3:]) == pytest.approx(lean(shuffled, boots[:2], boots[3:]))


def test_four_boots_have_a_drift_and_no_interval_and_one_has_none() -> None:
    found = drift_of(at_levels([0.0, 0.1, 0.2, 0.3]))
    assert found.total == pytest.approx(100 * math.expm1(0.3))
    assert found.interval is None
    assert not found.proven
    assert drift(at_levels([0.0])) is None
    assert drift([Watched(5.0, (1.0,)), Watched(5.0, (2.0,))]) is None


def test_a_step_is_judged_by_the_samples_of_boots_or_by_a_calibration() -> None:
    jump = [Watched(place, (mean, 1.01 * mean)) for place, mean in enumerate([100.0, 100, 100, 110, 110, 110])]
    found = drift_of(jump)
    assert found.step == pytest.approx(10)
    assert found.explained is not None
    assert 1 < found.explained < 4
    assert found.unsteady
    assert not drift_of(jump, Noise(boots=5.0, samples=1.0)).unsteady
    alone = drift_of([Watched(boot.at, boot.samples[:1]) for boot in jump])
    assert (alone.explained, alone.unsteady) == (None, False)


@pytest.mark.parametrize("noise", [None, Noise(boots=1.0, samples=2.0)])
def test_noise_alone_makes_an_unexplained_step_in_five_of_a_hundred_runs(noise: Noise | None) -> None:
    """The steps are correlated, so the share is a little smaller."""
    rng = np.random.default_rng(2)
    of_boots = 0.01 if noise else 0.0
    unsteady = 0
    for _ in range(600):
        levels = 0.02 * rng.normal(size=(8, 3)) + of_boots * rng.normal(size=(8, 1))
        boots = [Watched(float(at), tuple(np.exp(row).tolist())) for at, row in enumerate(levels)]
        unsteady += drift_of(boots, noise).unsteady
    assert 0.015 < unsteady / 600 < 0.07


@given(PERCENTS)
def test_a_straight_drift_leans_to_neither_side_of_a_b_b_a(planted: float) -> None:
    boots = at_levels([math.log1p(planted / 100) * place / 5 for place in range(6)])
    (first, a1, b1, b2, a2, last) = boots
    assert lean([first, last], [a1, a2], [b1, b2]) == pytest.approx(0, abs=1e-9)
    assert lean([first, last], [first], [last]) == pytest.approx(planted)
    assert lean([first, last], [last], [first]) == pytest.approx(100 * (1 / (1 + planted / 100) - 1))


def test_nothing_leans_without_boots_around() -> None:
    boots = at_levels([0.0, 0.1])
    assert lean(boots[:1], boots, boots) is None
    assert lean(boots, [], boots) is None
