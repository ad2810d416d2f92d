# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from perfweb.stats.boots import POOLING, SIGNIFICANCE, Level, Replicates, anova, boots_differ, replicates

boots = st.lists(st.lists(st.integers(0, 50).map(float), min_size=2, max_size=8), min_size=2, max_size=5)


@given(boots)
def test_it_is_the_analysis_of_variance(samples: list[list[float]]) -> None:
    assume(any(len(set(boot)) > 1 for boot in samples))
    p = stats.f_oneway(*samples).pvalue
    assume(abs(p - SIGNIFICANCE) > 1e-9)
    assert boots_differ(samples) == (p < SIGNIFICANCE)


@given(boots, boots)
def test_variants_are_analysed_together_whatever_their_means(a: list[list[float]], b: list[list[float]]) -> None:
    far = [[value + 1000 for value in boot] for boot in b]
    one, other, both = anova(a), anova(far), anova(a, far)
    assert both.between_freedom == one.between_freedom + other.between_freedom
    assert both.within_freedom == one.within_freedom + other.within_freedom
    between = one.between * one.between_freedom + other.between * other.between_freedom
    within = one.within * one.within_freedom + other.within * other.within_freedom
    assert both.between * both.between_freedom == pytest.approx(between, abs=1e-6)
    assert both.within * both.within_freedom == pytest.approx(within, abs=1e-6)


@given(boots, boots)
def test_boots_are_counted_unless_chance_explains_them(a: list[list[float]], b: list[list[float]]) -> None:
    counted = replicates(a, b)
    if anova(a, b).p <= POOLING:
        assert counted.level is Level.BOOTS
        assert counted.a == pytest.approx([np.mean(boot) for boot in a])
    else:
        assert counted.level is Level.SAMPLES
        assert (counted.a, counted.b) == tuple([value for boot in side for value in boot] for side in (a, b))


def test_single_samples_are_counted_as_they_are() -> None:
    assert replicates([[1.0], [2.0]], [[3.0]]) == Replicates(Level.SAMPLES, [1.0, 2.0], [3.0])


def test_boots_apart_from_each_other() -> None:
    assert boots_differ([[100, 101, 99], [120, 121, 119]])
    assert not boots_differ([[100, 101, 99], [100, 102, 98]])


def test_without_any_scatter_any_difference_counts() -> None:
    assert boots_differ([[5, 5], [6, 6]])
    assert not boots_differ([[5, 5], [5, 5]])


@pytest.mark.parametrize("samples", [[], [[1.0, 2.0]], [[1.0], [2.0]], [[], [1.0, 2.0]]])
def test_too_little_to_distinguish(samples: list[list[float]]) -> None:
    assert not boots_differ(samples)


def test_equal_boots_are_seldom_marked() -> None:
    random = np.random.default_rng(1925)
    marked = [boots_differ(random.normal(100, 1, (4, 5)).tolist()) for _ in range(2000)]
    assert sum(marked) / len(marked) == pytest.approx(SIGNIFICANCE, abs=0.008)
