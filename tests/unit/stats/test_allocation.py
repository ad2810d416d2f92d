# SPDX-License-Identifier: BSD-2-Clause
"""Boots and samples for a time budget."""

from __future__ import annotations

import math

import pytest

from perfweb.stats.design.allocation import Design, Noise, allocate

MOST = Design(boots=1000, samples=100)


def cost(boot: float, sample: float) -> float:
    return 2 * (boot + sample)


@pytest.mark.parametrize(("boots", "samples", "expected"), [(1.0, 3.0, 6), (1.0, 1.0, 2), (3.0, 1.0, 1)])
def test_with_much_time_it_is_the_optimum_of_two_stages(boots: float, samples: float, expected: int) -> None:
    noise = Noise(boots, samples)
    assert round(noise.samples_per_boot(4.0, 1.0)) == pytest.approx(expected, abs=1)
    found = allocate([noise], 3600, lambda each: cost(4.0, each), 95, MOST)
    assert found is not None
    assert found.samples == pytest.approx(expected, abs=1)
    assert found.boots == 3600 // cost(4.0, found.samples)


def test_no_other_design_within_the_budget_shows_less() -> None:
    noise = Noise(0.7, 2.0)
    found = allocate([noise], 300, lambda each: cost(5.0, 1.1 * each), 95, MOST)
    assert found is not None
    for samples in range(1, 60):
        if (boots := int(300 // cost(5.0, 1.1 * samples))) >= 2:
            assert noise.visible(found.boots, found.samples, 95) <= noise.visible(boots, samples, 95) * (1 + 1e-6)


def test_where_boots_do_not_differ_samples_are_cheaper() -> None:
    noise = Noise(0.0, 1.0)
    assert noise.samples_per_boot(4.0, 1.0) == math.inf
    found = allocate([noise], 600, lambda each: cost(60.0, each), 95, MOST)
    assert found is not None
    assert found.samples > 30


def test_limits_hold_and_without_noise_the_fewest_samples_do() -> None:
    assert allocate([Noise(0.0, 0.0)], 3600, lambda each: cost(5.0, each), 95, Design(50, 20)) == Design(50, 1)


def test_a_budget_without_room_for_two_boots_has_no_design() -> None:
    assert allocate([Noise(1.0, 1.0)], 20, lambda each: cost(9.5, each), 95, MOST) is None
