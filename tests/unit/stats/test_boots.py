# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from perfweb.stats.boots import SIGNIFICANCE, boots_differ

boots = st.lists(st.lists(st.integers(0, 50).map(float), min_size=2, max_size=8), min_size=2, max_size=5)


@given(boots)
def test_it_is_the_analysis_of_variance(samples: list[list[float]]) -> None:
    assume(any(len(set(boot)) > 1 for boot in samples))
    p = stats.f_oneway(*samples).pvalue
    assume(abs(p - SIGNIFICANCE) > 1e-9)
    assert boots_differ(samples) == (p < SIGNIFICANCE)


def test_boots_apart_from_each_other() -> None:
    assert boots_differ([[100, 101, 99], [120, 121, 119]])
    assert not boots_differ([[100, 101, 99], [100, 102, 98]])


def test_without_any_scatter_any_difference_counts() -> None:
    assert boots_differ([[5, 5], [6, 6]])
    assert not boots_differ([[5, 5], [5, 5]])


@pytest.mark.parametrize("samples", [[], [[1.0, 2.0]], [[1.0], [2.0]], [[], [1.0, 2.0]]])
def test_too_little_to_tell(samples: list[list[float]]) -> None:
    assert not boots_differ(samples)


def test_equal_boots_are_seldom_marked() -> None:
    random = np.random.default_rng(1925)
    marked = [boots_differ(random.normal(100, 1, (4, 5)).tolist()) for _ in range(2000)]
    assert sum(marked) / len(marked) == pytest.approx(SIGNIFICANCE, abs=0.008)
