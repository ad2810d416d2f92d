# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from perfweb.stats.paired import detectable_change, paired_change

values = st.integers(500, 2000).map(float)
several = st.lists(st.tuples(values, values), min_size=2, max_size=12)


@given(several)
def test_zero_is_left_out_exactly_when_the_paired_t_rejects(pairs: list[tuple[float, float]]) -> None:
    ratios = [math.log(b / a) for a, b in pairs]
    assume(np.std(ratios) > 1e-9)
    p = float(stats.ttest_1samp(ratios, 0).pvalue)
    assume(abs(p - 0.05) > 1e-9)
    assert paired_change(pairs, 0.95).leaves_out_zero == (p < 0.05)


@given(several)
def test_the_other_way_round_it_is_the_inverse(pairs: list[tuple[float, float]]) -> None:
    there, back = paired_change(pairs, 0.95), paired_change([(b, a) for a, b in pairs], 0.95)
    for ours, theirs in ((there.percent, back.percent), (there.low, back.high), (there.high, back.low)):
        assert (1 + ours / 100) * (1 + theirs / 100) == pytest.approx(1)


def test_a_drift_of_both_sides_costs_nothing() -> None:
    pairs = [(100.0 * drift, 103.0 * drift) for drift in (1, 2, 5)]
    found = paired_change(pairs, 0.95)
    assert (found.percent, found.low, found.high) == pytest.approx((3, 3, 3))


def test_the_interval_has_its_stated_coverage_of_the_true_ratio() -> None:
    random = np.random.default_rng(1986)
    held = 0
    for _ in range(2000):
        a, b = np.exp(random.normal(0, 0.1, 5)), 1.2 * np.exp(random.normal(0, 0.1, 5))
        found = paired_change(list(zip(a.tolist(), b.tolist(), strict=True)), 0.9)
        held += found.low < 20 < found.high
    assert held / 2000 == pytest.approx(0.9, abs=0.02)


def test_what_could_have_been_seen_is_seen_in_about_four_runs_of_five() -> None:
    random = np.random.default_rng(1995)

    def measured(change: float) -> list[tuple[float, float]]:
        return [(100.0, 100 * math.exp(change + random.normal(0, 0.05))) for _ in range(10)]

    size = np.median([detectable_change(measured(0), 0.95) for _ in range(500)])
    proven = sum(paired_change(measured(math.log1p(size / 100)), 0.95).leaves_out_zero for _ in range(1000))
    assert proven / 1000 == pytest.approx(0.8, abs=0.06)


@pytest.mark.parametrize("pairs", [[], [(1.0, 2.0)]])
def test_one_pair_proves_nothing(pairs: list[tuple[float, float]]) -> None:
    with pytest.raises(ValueError, match=f"{len(pairs)} pairs: an interval needs two or more"):
        paired_change(pairs, 0.95)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, math.nan])
def test_a_ratio_needs_positive_values(bad: float) -> None:
    with pytest.raises(ValueError, match="positive, finite"):
        paired_change([(1.0, 1.0), (1.0, bad)], 0.95)
