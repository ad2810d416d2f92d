# SPDX-License-Identifier: BSD-2-Clause
"""The Universal Scalability Law, fitted to rates that follow it and to some that cannot."""

from __future__ import annotations

import math

import pytest

from perfweb.stats.usl import Overtaking, Scalability, fit, overtakings

PROCESSORS = (1, 2, 4, 8, 16, 32)


@pytest.mark.parametrize(
    "law", [Scalability(5.0, 0.1, 0.002), Scalability(2e6, 0.5, 0.0), Scalability(3.0, 0.0, 0.01), Scalability(1, 0, 0)]
)
def test_the_law_is_found_again(law: Scalability) -> None:
    found = fit({n: law.at(n) for n in PROCESSORS})
    assert found.rate == pytest.approx(law.rate)
    assert found.contention == pytest.approx(law.contention, abs=1e-9)
    assert found.coherence == pytest.approx(law.coherence, abs=1e-9)


def test_the_rate_is_highest_at_the_peak() -> None:
    law = Scalability(1.0, 0.1, 0.001)
    assert law.peak == pytest.approx(30)
    assert law.at(30) > max(law.at(29), law.at(31))
    assert Scalability(1.0, 0.1, 0.0).peak == math.inf


@pytest.mark.parametrize(
    ("rates", "reason"),
    [
        ({1: 1.0, 2: 2.0}, "needs three or more"),
        ({1: 1.0, 2: 2.0, 4: 0.0}, "positive and finite"),
        ({0: 1.0, 2: 2.0, 4: 3.0}, "one processor or more"),
    ],
)
def test_what_cannot_be_fitted_is_explained(rates: dict[int, float], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        fit(rates)


def test_who_overtakes_whom() -> None:
    rates = {"a": {1: 2.0, 2: 3.0, 4: 3.0}, "b": {1: 1.0, 2: 2.9, 4: 5.0}, "c": {1: 2.0, 4: 3.0}}
    assert overtakings(rates) == [Overtaking("b", "a", 1, 4), Overtaking("b", "c", 1, 4)]
