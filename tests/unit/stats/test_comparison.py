# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from perfweb.stats.boots import Level
from perfweb.stats.comparison import (
    Comparison,
    Direction,
    Lack,
    Verdict,
    among,
    benjamini_hochberg,
    compare,
    compare_boots,
)
from perfweb.stats.student import difference
from perfweb.stats.summary import summarize

QUEUE = [5425.0, 5440, 5460, 5475, 5503]
DIRECT = [6074.0, 6100, 6126, 6140, 6169]
finite = st.floats(min_value=-1e100, max_value=1e100)
rates = st.lists(st.floats(min_value=90, max_value=110), min_size=1, max_size=6)
boots = st.lists(rates, min_size=1, max_size=5)


def test_more_of_what_should_be_high_is_faster() -> None:
    assert compare(QUEUE, DIRECT, Direction.HIGHER).verdict is Verdict.FASTER
    assert compare(DIRECT, QUEUE, Direction.HIGHER).verdict is Verdict.SLOWER


def test_more_of_what_should_be_low_is_slower() -> None:
    assert compare(QUEUE, DIRECT, Direction.LOWER).verdict is Verdict.SLOWER
    assert compare(DIRECT, QUEUE, Direction.LOWER).verdict is Verdict.FASTER


def test_the_same_samples_are_equivalent() -> None:
    found = compare(QUEUE, QUEUE, "higher")
    assert found.verdict is Verdict.EQUIVALENT
    assert found.effect is not None
    assert not found.effect.proven


def test_a_difference_that_is_certain_but_smaller_than_the_margin_is_equivalent() -> None:
    samples = [1.005 * sample for sample in range(9990, 10010)]
    found = compare(range(9990, 10010), samples, "higher")
    assert found.effect is not None
    assert found.effect.proven
    assert found.verdict is Verdict.EQUIVALENT
    assert compare(range(9990, 10010), samples, "higher", margin=0.4).verdict is Verdict.FASTER


def test_too_much_scatter_states_the_boots_that_it_takes() -> None:
    a, b = np.random.default_rng(4).normal(100, 3, (2, 100, 2)).tolist()
    found = compare_boots(a[:3], b[:3], "higher")
    assert (found.verdict, found.lack) == (Verdict.NOT_ENOUGH_DATA, Lack.PRECISION)
    assert found.more_boots is not None
    assert 0 < found.more_boots < 90
    assert compare_boots(a, b, "higher").verdict is Verdict.EQUIVALENT


@pytest.mark.parametrize(("a", "b"), [([], QUEUE), (QUEUE, []), ([1.0, 2.0], QUEUE), (QUEUE, [1.0])])
def test_fewer_than_three_samples_are_not_enough(a: list[float], b: list[float]) -> None:
    found = compare(a, b, "higher")
    assert (found.verdict, found.lack) == (Verdict.NOT_ENOUGH_DATA, Lack.SAMPLES)
    assert found.effect is None
    assert found.more_boots is None


def test_one_boot_of_a_variant_proves_nothing_about_its_boots() -> None:
    found = compare_boots([QUEUE], [DIRECT, DIRECT], "higher")
    assert (found.verdict, found.lack, found.boots) == (Verdict.NOT_ENOUGH_DATA, Lack.BOOTS, (1, 2))


def test_boots_that_differ_are_what_is_counted() -> None:
    """Student's t over all samples proves a difference here; it comes from a single boot."""
    usual, odd = [100.0, 101, 99, 100], [110.0, 111, 109, 110]
    assert difference(summarize(usual * 2), summarize(usual + odd)).proven
    found = compare_boots([usual, usual], [usual, odd], "higher")
    assert found.effect is not None
    assert found.effect.level is Level.BOOTS
    assert found.effect.observations == (2, 2)
    assert found.verdict is Verdict.NOT_ENOUGH_DATA


def test_boots_that_are_alike_let_all_samples_count() -> None:
    found = compare_boots([[99.0, 101], [98, 102]], [[89, 91], [88, 92]], "lower")
    assert found.effect is not None
    assert (found.effect.level, found.effect.observations) == (Level.SAMPLES, (4, 4))
    assert found.verdict is Verdict.FASTER


def test_two_modes_are_not_averaged() -> None:
    slow, fast = [100.0, 101, 99, 100, 102], [130.0, 131, 129, 130, 132]
    found = compare_boots([slow + fast, fast + slow], [slow + fast, fast + fast], "higher")
    assert (found.verdict, found.lack) == (Verdict.NOT_ENOUGH_DATA, Lack.MODES)
    assert found.modes[0] is not None
    assert found.modes[0].apart == pytest.approx(29.9, abs=0.1)


def test_two_modes_that_overlap_with_nothing_still_differ() -> None:
    slow, fast = [100.0, 101, 99, 100, 102], [130.0, 131, 129, 130, 132]
    far = [value + 100 for value in slow + fast]
    assert compare_boots([slow + fast, fast + slow], [far, far], "higher").verdict is Verdict.FASTER


def test_two_modes_closer_than_the_margin_do_not_matter() -> None:
    samples = [100.0, 100.01, 99.99, 100.0, 100.02, 100.5, 100.51, 100.49, 100.5, 100.52]
    assert compare(samples, samples, "higher").verdict is Verdict.EQUIVALENT


def test_a_change_that_stands_alone_among_many_tests_may_be_chance() -> None:
    random = np.random.default_rng(1995)
    alone = compare([97, 100, 103.0, 98, 102], [103, 100.5, 108, 110, 104.0], "higher")
    certain = compare([97, 100, 103.0, 98, 102], [203, 200.5, 208, 210, 204.0], "higher")
    others = [compare(a, b, "higher") for a, b in random.normal(100, 10, (19, 2, 5)).tolist()]
    assert alone.verdict is Verdict.FASTER
    assert among([alone])[0].verdict is Verdict.FASTER
    judged = among([alone, certain, *others])
    assert (judged[0].verdict, judged[0].lack) == (Verdict.NOT_ENOUGH_DATA, Lack.CERTAINTY)
    assert judged[1].verdict is Verdict.FASTER


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_adjusted_p_values_are_those_of_scipy(p: list[float]) -> None:
    assert benjamini_hochberg(p) == pytest.approx(list(stats.false_discovery_control(p)))


def test_a_baseline_far_below_the_scatter_of_the_other_side_still_has_a_percentage() -> None:
    """The pooled deviation here is more than twice the baseline's mean, which its own samples determine to 0.1 %."""
    found = compare([0.1916, 0.1917, 0.1918], [22.0, 24.0, 23.0], "higher")
    assert found.verdict is Verdict.FASTER
    assert found.effect is not None
    assert found.effect.interval.percent == pytest.approx(11898, abs=1)
    assert 9000 < found.effect.interval.low < 11898 < found.effect.interval.high < 14500
    assert compare([0.1916, 0.1917, 0.1918], [22.0, 24.0, 23.0], "lower").verdict is Verdict.SLOWER


def test_no_percentage_of_a_baseline_that_may_be_zero() -> None:
    found = compare([-1.0, 0, 1, 2], QUEUE, "higher")
    assert (found.verdict, found.lack) == (Verdict.NOT_ENOUGH_DATA, Lack.BASELINE)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"direction": "sideways"}, "sideways"),
        ({"direction": "higher", "confidence": 97}, "choose one of 80"),
        ({"direction": "higher", "margin": 0}, "between 0 and 100"),
    ],
)
def test_bad_arguments_are_errors(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compare(QUEUE, DIRECT, **arguments)  # type: ignore[arg-type]


@given(boots, boots)
def test_exchanging_the_sides_turns_the_verdict_around(a: list[list[float]], b: list[list[float]]) -> None:
    opposite = {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}
    there, back = compare_boots(a, b, "higher").verdict, compare_boots(b, a, "higher").verdict
    assert back is opposite.get(there, there)


@given(boots, boots, st.sampled_from([1e-9, 1e9]))
def test_the_unit_does_not_matter(a: list[list[float]], b: list[list[float]], factor: float) -> None:
    def scaled(boots: list[list[float]]) -> list[list[float]]:
        return [[factor * value for value in boot] for boot in boots]

    assert compare_boots(a, b, "higher").verdict is compare_boots(scaled(a), scaled(b), "higher").verdict


@given(st.lists(finite, min_size=3, max_size=10), st.lists(finite, min_size=3, max_size=10))
def test_no_percentage_is_ever_infinite(a: list[float], b: list[float]) -> None:
    effect = compare(a, b, "higher").effect
    if effect is not None:
        bounds = [effect.interval, effect.equivalence]
        assert all(np.isfinite([bound.percent, bound.low, bound.high]).all() for bound in bounds)
        assert all(bound.low <= bound.percent <= bound.high for bound in bounds)


def simulate(random: np.random.Generator, gain: float, boot_noise: float, boots: int, samples: int) -> Comparison:
    """Compare two variants whose boots and samples scatter by these percentages of the mean, b `gain` times a."""
    sides = [
        mean * (1 + boot_noise / 100 * random.normal(size=(boots, 1)) + random.normal(size=(boots, samples)) / 100)
        for mean in (1000, 1000 * gain)
    ]
    return compare_boots(sides[0].tolist(), sides[1].tolist(), "higher")


@pytest.mark.parametrize(("boots", "samples"), [(2, 5), (5, 2)])
@pytest.mark.parametrize("boot_noise", [0.0, 0.5, 1.0, 3.0])
def test_variants_without_a_difference_are_seldom_distinguished(boots: int, samples: int, boot_noise: float) -> None:
    random = np.random.default_rng(1937)
    found = [simulate(random, 1.0, boot_noise, boots, samples).verdict for _ in range(1000)]
    assert sum(verdict in {Verdict.FASTER, Verdict.SLOWER} for verdict in found) < 75


@pytest.mark.parametrize("boot_noise", [0.0, 0.5, 1.0])
def test_a_difference_of_the_margin_is_seldom_called_equivalent(boot_noise: float) -> None:
    random = np.random.default_rng(1987)
    found = [simulate(random, 1.02, boot_noise, 3, 4).verdict for _ in range(1000)]
    assert found.count(Verdict.EQUIVALENT) < 75
