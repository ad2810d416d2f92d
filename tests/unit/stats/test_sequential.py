# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from perfweb.stats.comparison import Verdict
from perfweb.stats.sequential import PRIOR, Block, decide, half_width

OPPOSITE = {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}
boot = st.lists(st.floats(90, 110), min_size=1, max_size=3)
blocks = st.lists(st.tuples(st.lists(boot, max_size=2), st.lists(boot, max_size=2)), max_size=8)


def draw(random: np.random.Generator, gain: float, scatter: float) -> Block:
    """A boot of each variant with two samples; boots scatter by that many percent, samples by half of it."""
    values = [mean * (1 + scatter / 100 * (random.normal() + random.normal(size=2) / 2)) for mean in (100, 100 * gain)]
    return [values[0].tolist()], [values[1].tolist()]


def run_until_decided(random: np.random.Generator, gain: float, scatter: float, most: int = 30) -> Verdict:
    seen: list[Block] = []
    while len(seen) < most:
        seen.append(draw(random, gain, scatter))
        if (decision := decide(seen)).decided:
            return decision.verdict
    return Verdict.NOT_ENOUGH_DATA


@pytest.mark.parametrize(("n_a", "n_b"), [(2, 2), (3, 2), (3, 3), (6, 5), (20, 20)])
def test_the_bound_is_where_the_mixed_likelihood_ratio_exceeds_one_in_alpha(n_a: int, n_b: int) -> None:
    """The ratio by numerical integration of the noncentral t density, which the closed form does not use."""
    freedom, size = n_a + n_b - 2, n_a * n_b / (n_a + n_b)
    t = half_width(freedom, size, 0.2) * math.sqrt(size)

    def weighted(effect: float) -> float:
        density = stats.nct.pdf(t, freedom, effect * math.sqrt(size))
        return float(density * stats.norm.pdf(effect, 0, 1 / math.sqrt(PRIOR)))

    mixed, _ = integrate.quad(weighted, -40, 40, points=[0, t / math.sqrt(size)], limit=400)
    assert mixed / stats.t.pdf(t, freedom) == pytest.approx(1 / 0.2, rel=1e-3)


def test_the_truth_lies_in_all_intervals_as_often_as_promised() -> None:
    """2000 experiments without a change, checked after each of 40 pairs of boots: fixed intervals are wrong too
    often.
    """
    random = np.random.default_rng(1939)
    a, b = random.normal(size=(2, 2000, 40))
    ever = {"sequence": np.zeros(2000, bool), "fixed": np.zeros(2000, bool)}
    for n in range(2, 41):
        deviation = np.sqrt((a[:, :n].var(axis=1, ddof=1) + b[:, :n].var(axis=1, ddof=1)) / 2)
        distance = np.abs(a[:, :n].mean(axis=1) - b[:, :n].mean(axis=1))
        ever["sequence"] |= distance > deviation * half_width(2 * n - 2, n / 2, 0.05)
        ever["fixed"] |= distance > deviation * stats.t.ppf(0.975, 2 * n - 2) * math.sqrt(2 / n)
    assert ever["sequence"].mean() <= 0.05
    assert ever["fixed"].mean() > 0.2


SCATTERS: dict[str, Callable[[np.random.Generator], float]] = {
    "normal": lambda random: random.normal(),
    "heavy tail": lambda random: random.exponential(),
    "two values": lambda random: float(random.integers(2)) + 0.05 * random.normal(),
}


@pytest.mark.parametrize("scatter", SCATTERS.values(), ids=SCATTERS)
def test_boots_of_one_variant_are_seldom_distinguished(scatter: Callable[[np.random.Generator], float]) -> None:
    """200 experiments of 20 pairs, checked after each pair; the margin is too small for equivalence."""
    random = np.random.default_rng(2027)
    wrong = 0
    for _ in range(200):
        seen: list[Block] = [([[100 + scatter(random)]], [[100 + scatter(random)]]) for _ in range(20)]
        wrong += any(decide(seen[:count], margin=0.001).decided for count in range(2, 21))
    assert wrong <= 14


def test_what_is_seen_to_differ_is_decided_soon() -> None:
    random = np.random.default_rng(2024)
    verdicts = [run_until_decided(random, 1.1, 1.0, most=6) for _ in range(50)]
    assert verdicts.count(Verdict.FASTER) >= 48


def test_what_is_the_same_is_called_equivalent() -> None:
    random = np.random.default_rng(2025)
    verdicts = [run_until_decided(random, 1.0, 0.7) for _ in range(60)]
    assert verdicts.count(Verdict.EQUIVALENT) >= 54


def test_a_change_of_the_margin_is_seldom_called_equivalent() -> None:
    random = np.random.default_rng(2026)
    verdicts = [run_until_decided(random, 1.02, 0.7) for _ in range(60)]
    assert verdicts.count(Verdict.EQUIVALENT) <= 6


def test_drift_from_block_to_block_hides_nothing() -> None:
    """Within each block the second variant is a tenth faster; from block to block everything doubles."""
    steps = [1.10, 1.11, 1.09, 1.10, 1.12, 1.10]
    seen: list[Block] = [([[100.0 * 2**k]], [[100.0 * 2**k * step]]) for k, step in enumerate(steps)]
    decision = decide(seen)
    assert decision.verdict is Verdict.FASTER
    assert decision.change is not None
    assert decision.change.low < 10 < decision.change.high
    assert not decide([(a, b) for (a, _), (_, b) in zip(seen, seen[1:] + seen[:1], strict=True)]).decided


def test_one_boot_of_each_means_go_on() -> None:
    decision = decide([([[100.0, 101]], [[120.0, 121]])])
    assert not decision.decided
    assert (decision.boots, decision.change) == ((1, 1), None)


def test_it_predicts_the_number_of_boots() -> None:
    seen: list[Block] = [([[98.0], [102.0]], [[97.0], [103.0]]), ([[99.0], [101.0]], [[99.0], [101.0]])]
    decision = decide(seen)
    assert not decision.decided
    assert decision.needed is not None
    assert decision.needed > 4
    assert decide(seen * (decision.needed // 4 + 1)).verdict is Verdict.EQUIVALENT


def test_boots_without_any_scatter() -> None:
    assert decide([([[100.0]], [[100.0]])] * 3).verdict is Verdict.EQUIVALENT
    assert decide([([[100.0]], [[90.0]])] * 3).verdict is Verdict.SLOWER
    assert decide([([[100.0]], [[90.0]])] * 3, direction="lower").verdict is Verdict.FASTER


@given(blocks)
def test_exchanging_the_sides_turns_the_verdict_around(seen: list[Block]) -> None:
    there, back = decide(seen).verdict, decide([(b, a) for a, b in seen]).verdict
    assert back is OPPOSITE.get(there, there)


@pytest.mark.parametrize(
    ("arguments", "message"), [({"alpha": 0}, "alpha is 0"), ({"alpha": 5}, "alpha is 5"), ({"margin": -1}, "margin")]
)
def test_bad_arguments_are_errors(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        decide([], **arguments)  # type: ignore[arg-type]


def test_a_boot_that_stood_still_has_no_ratio() -> None:
    with pytest.raises(ValueError, match="not above zero"):
        decide([([[0.0]], [[1.0]])] * 2)
