# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfweb.stats.comparison import POWER, Direction, Verdict, compare

QUEUE = [5425.0, 5440, 5460, 5475, 5503]
finite = st.floats(min_value=-1e100, max_value=1e100)
DIRECT = [6074.0, 6100, 6126, 6140, 6169]


def test_more_of_what_should_be_high_is_faster() -> None:
    assert compare(QUEUE, DIRECT, Direction.HIGHER).verdict is Verdict.FASTER
    assert compare(DIRECT, QUEUE, Direction.HIGHER).verdict is Verdict.SLOWER


def test_more_of_what_should_be_low_is_slower() -> None:
    assert compare(QUEUE, DIRECT, Direction.LOWER).verdict is Verdict.SLOWER
    assert compare(DIRECT, QUEUE, Direction.LOWER).verdict is Verdict.FASTER


def test_the_same_samples_prove_no_difference_and_say_what_would_have_been_seen() -> None:
    found = compare(QUEUE, QUEUE, "higher")
    assert found.verdict is Verdict.NO_DIFFERENCE_PROVEN
    assert found.difference is not None
    assert found.detectable is not None
    assert found.detectable > found.difference.error
    assert found.detectable_percent == pytest.approx(100 * found.detectable / np.mean(QUEUE))


@pytest.mark.parametrize(("a", "b"), [([], QUEUE), (QUEUE, []), ([1.0, 2.0], QUEUE), (QUEUE, [1.0])])
def test_fewer_than_three_samples_are_not_enough(a: list[float], b: list[float]) -> None:
    found = compare(a, b, "higher")
    assert found.verdict is Verdict.NOT_ENOUGH_DATA
    assert found.difference is None
    assert found.detectable_percent is None


def test_an_unknown_direction_is_an_error() -> None:
    with pytest.raises(ValueError, match="sideways"):
        compare(QUEUE, DIRECT, "sideways")


@given(st.lists(st.floats(min_value=1, max_value=1e6), min_size=3, max_size=20))
def test_exchanging_the_sides_turns_the_verdict_around(samples: list[float]) -> None:
    opposite = {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}
    there = compare(QUEUE, samples, "higher").verdict
    back = compare(samples, QUEUE, "higher").verdict
    assert back is opposite.get(there, there)


def test_the_detectable_effect_is_found_with_the_promised_power() -> None:
    """2000 experiments whose true difference is the detectable effect: 10 samples a side, deviation 1."""
    random = np.random.default_rng(2005)
    detectable = (2.101 + 0.8620) * np.sqrt(2 / 10)
    found = [
        compare(random.normal(100, 1, 10).tolist(), random.normal(100 + detectable, 1, 10).tolist(), "higher").verdict
        for _ in range(2000)
    ]
    assert found.count(Verdict.FASTER) / len(found) == pytest.approx(POWER, abs=0.04)


@given(st.lists(finite, min_size=3, max_size=10), st.lists(finite, min_size=3, max_size=10))
def test_no_percentage_is_ever_infinite(a: list[float], b: list[float]) -> None:
    found = compare(a, b, "higher")
    assert found.difference is not None
    for number in (found.difference.percent, found.difference.percent_error, found.detectable_percent):
        assert number is None or np.isfinite(number)
