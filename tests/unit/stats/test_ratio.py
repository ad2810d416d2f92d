# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from perfweb.stats.ratio import Change, change, means, unequal
from perfweb.stats.summary import summarize

observations = st.lists(st.integers(900, 1100).map(float), min_size=3, max_size=12).filter(
    lambda drawn: len(set(drawn)) > 1
)


def percents(a: list[float], b: list[float], coverage: float = 0.95) -> Change:
    found = change(means(a, b), coverage)
    assert found is not None
    return found


@given(observations, observations)
def test_zero_is_left_out_exactly_when_student_t_rejects(a: list[float], b: list[float]) -> None:
    p = stats.ttest_ind(a, b).pvalue
    assume(abs(p - 0.05) > 1e-9)
    assert percents(a, b).leaves_out_zero == (p < 0.05)


@given(observations, observations)
def test_each_bound_is_a_ratio_that_is_just_not_rejected(a: list[float], b: list[float]) -> None:
    """The definition of Fieller's interval, computed another way: the t statistic of mean b - r * mean a."""
    both, found = means(a, b), percents(a, b)
    t = stats.t.ppf(0.975, len(a) + len(b) - 2)
    for bound in (found.low, found.high):
        ratio = 1 + bound / 100
        error = both.pooled_deviation * math.sqrt(1 / len(b) + ratio**2 / len(a))
        assert abs(np.mean(b) - ratio * np.mean(a)) == pytest.approx(t * error, rel=1e-6, abs=1e-6)


def test_the_interval_has_its_stated_coverage_of_the_true_ratio() -> None:
    random = np.random.default_rng(1954)
    held = 0
    for a, b in zip(random.normal(100, 20, (2000, 4)), random.normal(130, 20, (2000, 5)), strict=True):
        found = change(means(a.tolist(), b.tolist()), 0.9)
        held += found is None or found.low < 30 < found.high
    assert held / 2000 == pytest.approx(0.9, abs=0.02)


def test_the_margin_is_a_factor_both_ways() -> None:
    assert Change(0, -1.9, 1.9).lies_within(2)
    assert not Change(0, -1.97, 1.9).lies_within(2)
    assert not Change(0, -1.9, 2.1).lies_within(2)


def test_no_ratio_to_a_baseline_that_may_be_zero() -> None:
    assert change(means([-1, 1, 2], [5, 6, 7]), 0.95) is None
    assert change(means([-5, -5.1, -5.2], [5, 6, 7]), 0.95) is None


def test_one_observation_has_no_interval() -> None:
    with pytest.raises(ValueError, match="1 and 2 observations"):
        means([1], [1, 2])


def test_welch_is_used_where_variances_are_not_assumed_equal() -> None:
    a, b = [1.0, 1.01, 0.99, 1.0], [100.0, 110.0, 90.0, 104.0]
    found = unequal(summarize(a), summarize(b))
    other = stats.ttest_ind(a, b, equal_var=False)
    assert found.p == pytest.approx(other.pvalue)
    assert found.degrees_of_freedom == pytest.approx(other.df)
    interval = change(found, 0.95)
    assert interval is not None
    assert interval.low < 9998 < interval.high


def test_sets_that_do_not_vary_have_an_exact_ratio() -> None:
    found = unequal(summarize([2.0, 2, 2]), summarize([3.0, 3]))
    assert change(found, 0.95) == Change(50, 50, 50)
    assert found.p == 0
