# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfweb.stats.summary import summarize


@given(st.lists(st.floats(min_value=-1e9, max_value=1e9), min_size=2, max_size=50))
def test_a_summary_agrees_with_exact_arithmetic(samples: list[float]) -> None:
    summary = summarize(samples)
    assert (summary.n, summary.minimum, summary.maximum) == (len(samples), min(samples), max(samples))
    assert summary.median == pytest.approx(statistics.median(samples))
    assert summary.mean == pytest.approx(statistics.fmean(samples), abs=1e-6)
    assert summary.deviation == pytest.approx(statistics.stdev(samples), rel=1e-6, abs=1e-6)


def test_digits_survive_a_mean_that_is_large_against_the_spread() -> None:
    assert summarize([1e9 + 1, 1e9 + 2, 1e9 + 4]).deviation == pytest.approx(1.5275252)


def test_one_sample_has_no_deviation() -> None:
    summary = summarize([7])
    assert math.isnan(summary.deviation)
    assert summary.relative_deviation is None


def test_relative_deviation_is_in_percent_of_the_mean() -> None:
    assert summarize([-9, -10, -11]).relative_deviation == pytest.approx(10)
    assert summarize([-1, 0, 1]).relative_deviation is None


def test_no_samples_and_infinite_ones_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one number"):
        summarize([])
    with pytest.raises(ValueError, match="sample 2 is inf"):
        summarize([1, math.inf])
