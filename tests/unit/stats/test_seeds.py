# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from perfweb.stats.boots import Level
from perfweb.stats.comparison import Lack, Verdict, compare_boots
from perfweb.stats.seeds import compare_seeds

SCATTERED = {1: [100.0, 180.0], 2: [310.0, 290.0], 3: [55.0, 60.0]}
values = st.lists(st.floats(min_value=1, max_value=1e6), min_size=1, max_size=4)
sides = st.dictionaries(st.integers(1, 9), values, min_size=1, max_size=6)


def scaled(factor: float) -> dict[int, list[float]]:
    return {seed: [factor * value for value in some] for seed, some in SCATTERED.items()}


@given(sides)
def test_sides_that_agree_seed_by_seed_are_identical(side: dict[int, list[float]]) -> None:
    found = compare_seeds(side, dict(side), "higher")
    assert (found.verdict, found.lack, found.more_boots) == (Verdict.IDENTICAL, None, None)


def test_seeds_scatter_and_their_ratios_do_not() -> None:
    """Without the pairs three boots with this scatter cannot detect 10 %."""
    base, patch = SCATTERED, scaled(1.1)
    assert compare_boots(list(base.values()), list(patch.values()), "higher").verdict is Verdict.NOT_ENOUGH_DATA
    found = compare_seeds(base, patch, "higher")
    assert found.effect is not None
    assert (found.verdict, found.effect.level) == (Verdict.FASTER, Level.SEEDS)
    assert found.effect.interval.percent == pytest.approx(10)
    assert compare_seeds(base, patch, "lower").verdict is Verdict.SLOWER


def test_a_small_change_of_every_seed_is_equivalent_and_not_identical() -> None:
    found = compare_seeds(SCATTERED, scaled(1.001), "higher")
    assert found.verdict is Verdict.EQUIVALENT
    assert found.effect is not None
    assert found.effect.proven


def test_ratios_that_scatter_leave_it_open_and_state_the_seeds_that_would_decide() -> None:
    base = {seed: [100.0] for seed in range(1, 6)}
    patch = dict(enumerate(([96.0], [107.0], [99.0], [104.0], [97.0]), start=1))
    found = compare_seeds(base, patch, "higher")
    assert (found.verdict, found.lack) == (Verdict.NOT_ENOUGH_DATA, Lack.PRECISION)
    assert found.more_boots is not None
    assert 5 < found.more_boots < 200


def test_only_seeds_that_both_have_are_compared() -> None:
    found = compare_seeds({1: [5.0], 2: [6.0], 9: [7.0]}, {1: [5.0], 2: [6.0], 8: [1.0]}, "higher")
    assert found.verdict is Verdict.IDENTICAL
    assert found.effect is not None
    assert found.effect.observations == (2, 2)


@pytest.mark.parametrize(
    ("a", "b", "lack"),
    [
        ({}, {1: [5.0]}, Lack.SAMPLES),
        ({1: [5.0]}, {2: [5.0]}, Lack.SEEDS),
        ({1: [5.0]}, {1: [6.0]}, Lack.BOOTS),
        ({1: [0.0], 2: [5.0]}, {1: [6.0], 2: [5.0]}, Lack.BASELINE),
    ],
)
def test_what_is_missing_is_named(a: dict[int, list[float]], b: dict[int, list[float]], lack: Lack) -> None:
    found = compare_seeds(a, b, "higher")
    assert (found.verdict, found.lack, found.effect) == (Verdict.NOT_ENOUGH_DATA, lack, None)


@given(st.lists(st.tuples(st.floats(50, 150), st.floats(50, 150)), min_size=3, max_size=9))
def test_p_is_that_of_the_paired_t_test_of_logarithms(pairs: list[tuple[float, float]]) -> None:
    base, patch = ({seed: [pair[side]] for seed, pair in enumerate(pairs)} for side in (0, 1))
    found = compare_seeds(base, patch, "higher")
    if found.verdict is Verdict.IDENTICAL:
        return
    assert found.effect is not None
    expected = stats.ttest_rel(*np.log(np.array(pairs)).T).pvalue
    assert found.effect.p == pytest.approx(expected, rel=1e-6, abs=1e-9)
