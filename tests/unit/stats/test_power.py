# SPDX-License-Identifier: BSD-2-Clause
"""Power against the examples of R's manual and against simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from perfweb.stats.design.power import POWER, detectable, needed_to_decide, power_of_equivalence, power_of_t


def test_the_examples_of_power_t_test() -> None:
    """R, help(power.t.test): n = 20, delta = 1 gives 0.8689528; power = 0.90, delta = 1 gives n = 22.02110."""
    assert power_of_t(1, 1, 20, 95) == pytest.approx(0.8689528, abs=1e-6)
    assert power_of_t(1, 1, 22, 95) < 0.90 < power_of_t(1, 1, 23, 95)


def test_the_detectable_difference_is_found_with_the_promised_power() -> None:
    found = detectable(1, 10, 10, 95)
    assert found == pytest.approx((2.10092 + 0.86205) * math.sqrt(2 / 10), rel=1e-4)
    assert power_of_t(found, 1, 10, 95) == pytest.approx(POWER, abs=0.01)


def test_equivalence_is_proven_as_often_as_promised() -> None:
    random = np.random.default_rng(1987)
    a, b = random.normal(size=(2, 20_000, 12))
    error = np.sqrt((a.var(axis=1, ddof=1) + b.var(axis=1, ddof=1)) / 12)
    proven = np.abs(b.mean(axis=1) - a.mean(axis=1)) + 1.717 * error < 1.3
    assert power_of_equivalence(1.3, 1, 12, 95) == pytest.approx(proven.mean(), abs=0.02)


@pytest.mark.parametrize("deviation", [0.0, 0.1, 1.0, 7.0, 100.0])
def test_what_is_needed_is_just_enough(deviation: float) -> None:
    n = needed_to_decide(2, deviation, 95)
    assert n is not None
    assert power_of_equivalence(2, deviation, n, 95) >= POWER
    assert detectable(deviation, n, n, 95) <= 2
    if n > 2:
        assert power_of_equivalence(2, deviation, n - 1, 95) < POWER or detectable(deviation, n - 1, n - 1, 95) > 2


def test_too_much_noise_for_any_number() -> None:
    assert needed_to_decide(0.001, 100, 95) is None
