# SPDX-License-Identifier: BSD-2-Clause
"""Verdicts on recorded boots: few false positives, and real differences are found."""

from __future__ import annotations

import pytest

from perfweb.stats.comparison import Verdict
from perfweb.stats.samples import Metric, read_samples
from tests.bench.stats import RECORDED, fixed, impatient, made_up, outcomes, recorded, sequential

PROVEN = {Verdict.FASTER, Verdict.SLOWER}
RATES = [metric for metric in read_samples(RECORDED) if metric.direction == "higher"]


@pytest.mark.parametrize("metric", RATES, ids=lambda metric: metric.test)
def test_recorded_boots_of_one_variant_are_seldom_distinguished(metric: Metric) -> None:
    a, again, _ = metric.variants.values()
    draw = recorded(list(zip(a, again, strict=False)), exchange=True)
    for design in (fixed(5, 2), fixed(10, 1), sequential(2)):
        wrong = sum(outcome.verdict in PROVEN for outcome in outcomes(draw, design, 60))
        assert wrong <= 8
    assert sum(outcome.verdict in PROVEN for outcome in outcomes(draw, impatient(2), 60)) > 8


@pytest.mark.parametrize("metric", RATES, ids=lambda metric: metric.test)
def test_recorded_boots_of_different_variants_are_distinguished(metric: Metric) -> None:
    """Direct dispatch is a third faster, but the machine was so busy that it often takes more than forty boots."""
    a, _, b = metric.variants.values()
    found = outcomes(recorded(list(zip(a, b, strict=False)), exchange=False), sequential(2), 40)
    assert sum(outcome.verdict is Verdict.FASTER for outcome in found) >= 8
    assert sum(outcome.verdict in {Verdict.SLOWER, Verdict.EQUIVALENT} for outcome in found) <= 3


def test_a_clear_difference_takes_less_time_than_ten_fixed_boots() -> None:
    draw = made_up(1.1, 1.0)
    early, late = outcomes(draw, sequential(2), 40), outcomes(draw, fixed(10, 1), 40)
    assert all(outcome.verdict is Verdict.FASTER for outcome in early)
    assert sum(outcome.minutes for outcome in early) < sum(outcome.minutes for outcome in late) / 2
