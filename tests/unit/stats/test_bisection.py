# SPDX-License-Identifier: BSD-2-Clause
"""Bisection names the commit that made the change, with the promised probability."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfweb.stats.bisection import MIN_ERROR, Bisection, Observation, bisect, share

ENOUGH = 0.95


def pursued(
    count: int, culprit: int, size: float, error: float, rng: random.Random, skipped: set[int] | None = None
) -> tuple[Bisection, int]:
    """Measure the proposed places until there is none; return the result, and the number of measurements."""
    seen = [Observation(count - 1, rng.gauss(size, error), error)]
    found = bisect(count, seen, skipped or ())
    while found.next is not None and found.probability < ENOUGH and len(seen) < 200:
        mean = size if found.next >= culprit else 0.0
        seen.append(Observation(found.next, rng.gauss(mean, error), error))
        found = bisect(count, seen, skipped or ())
    return found, len(seen)


@given(count=st.integers(1, 40), data=st.data())
def test_a_clear_change_is_found_in_as_many_steps_as_halving_takes(count: int, data: st.DataObject) -> None:
    culprit = data.draw(st.integers(0, count - 1))
    found, steps = pursued(count, culprit, -0.07, MIN_ERROR, random.Random(1))
    assert (found.place, found.first, found.last) == (culprit, culprit, culprit)
    assert found.probability > ENOUGH
    assert steps <= 1 + count.bit_length()


@given(
    st.permutations(
        [Observation(7, 0.05, 0.01), Observation(3, 0.01, 0.01), Observation(5, 0.04, 0.02), Observation(3, 0.0, 0.02)]
    )
)
def test_the_order_of_results_does_not_matter(observations: list[Observation]) -> None:
    assert bisect(8, observations).probabilities == pytest.approx(
        bisect(8, sorted(observations, key=repr)).probabilities
    )


def test_the_stated_probability_is_the_rate_of_right_answers() -> None:
    """With errors as large as half the change, 200 times."""
    rng = random.Random(5)
    right, claimed = 0, 0.0
    for _ in range(200):
        culprit = rng.randrange(16)
        found, _ = pursued(16, culprit, 0.02, 0.01, rng)
        right += found.place == culprit
        claimed += found.probability
    assert claimed / 200 == pytest.approx(right / 200, abs=0.04)
    assert right / 200 > 0.9


def test_what_cannot_be_measured_stays_among_the_likely_ones() -> None:
    found, steps = pursued(8, 4, 0.1, 0.001, random.Random(2), skipped={3, 4})
    assert (found.first, found.last) == (3, 5)
    assert found.probability == pytest.approx(1 / 3, rel=0.01)
    assert found.next is None, "no measurement would tell more"
    assert steps < 8


def test_a_small_change_needs_more_than_one_measurement_of_a_commit() -> None:
    found, steps = pursued(4, 2, 0.01, 0.01, random.Random(3))
    assert steps > 4
    assert found.probability >= ENOUGH


def test_before_anything_is_measured_all_are_alike() -> None:
    found = bisect(5, [])
    assert found.probabilities == pytest.approx([0.2] * 5)
    assert bisect(1, []).probability == 1


@pytest.mark.parametrize(("count", "place"), [(0, 0), (3, 3), (3, -1)])
def test_a_place_that_there_is_not_is_an_error(count: int, place: int) -> None:
    with pytest.raises(ValueError, match="places lie between"):
        bisect(count, [Observation(place, 0.0, 1.0)])


def test_the_last_place_has_to_be_observed_first() -> None:
    with pytest.raises(ValueError, match="the last place"):
        bisect(3, [Observation(1, 0.1, 0.01)])


def test_of_two_changes_in_a_range_each_commit_has_its_own_share() -> None:
    observations = [Observation(11, math.log(0.9618), 0.001), Observation(10, math.log(0.9918), 0.001)]
    own = share(11, observations)
    assert own is not None
    assert own.percent == pytest.approx(100 * (0.9618 / 0.9918 - 1))
    assert own.low == pytest.approx(own.percent - 0.27, abs=0.01)
    assert own.high == pytest.approx(own.percent + 0.27, abs=0.01)


def test_a_change_that_came_alone_is_all_its_commits() -> None:
    behind = Observation(11, -0.04, 0.001)
    assert share(11, [behind]) is None
    assert share(11, [behind, Observation(10, 0.0019, 0.001), Observation(3, -0.02, 0.001)]) is None
