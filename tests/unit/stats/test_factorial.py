# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

import itertools
import math
import random

import pytest

from perfweb.stats.factorial import KnobEffect, knob_effects


def by_name(effects: list[KnobEffect]) -> dict[str, KnobEffect]:
    return {"*".join(f"{factor.knob}={factor.level}" for factor in effect.factors): effect for effect in effects}


def test_the_effects_of_a_full_factorial_are_those_that_were_put_in() -> None:
    rng = random.Random(1)
    settings = [{"a": a, "b": b} for a, b in itertools.product("01", "01") for _ in range(10)]
    values = [
        100 * 1.2 ** (s["a"] == "1") * 0.9 ** (s["b"] == "1") * 1.05 ** (s["a"] == s["b"] == "1") * rng.gauss(1, 0.001)
        for s in settings
    ]
    effects = by_name(knob_effects(settings, values))
    # A main effect is averaged over the other knob, so it includes half of the interaction.
    assert effects["a=1"].percent == pytest.approx(100 * (1.2 * math.sqrt(1.05) - 1), abs=0.2)
    assert effects["b=1"].percent == pytest.approx(100 * (0.9 * math.sqrt(1.05) - 1), abs=0.2)
    assert effects["a=1*b=1"].percent == pytest.approx(5, abs=0.3)
    assert all(effect.proven for effect in effects.values())


def test_the_filtration_rate_experiment() -> None:
    """Montgomery, Design and Analysis of Experiments, example 6.2, a 2⁴ design: for logarithms the signs are the
    same.
    """
    rates = [45, 71, 48, 65, 68, 60, 80, 65, 43, 100, 45, 104, 75, 86, 70, 96]
    settings = [{name: str(index >> place & 1) for place, name in enumerate("ABCD")} for index in range(16)]
    effects = by_name(knob_effects(settings, rates))
    logs = [math.log(rate) for rate in rates]
    for place, name in enumerate("ABCD"):
        up = sum(value if index >> place & 1 else -value for index, value in enumerate(logs)) / 8
        assert effects[f"{name}=1"].percent == pytest.approx(100 * math.expm1(up))
    seen = {name: effect.percent or 0.0 for name, effect in effects.items()}
    assert seen["A=1"] > max(seen[f"{name}=1"] for name in "BCD")
    assert seen["A=1*C=1"] < 0 < seen["A=1*D=1"]


def test_no_effect_is_mostly_not_proven() -> None:
    rng = random.Random(2)
    settings = [{"a": a} for a in "01" for _ in range(6)]
    proven = sum(knob_effects(settings, [rng.gauss(100, 1) for _ in settings])[0].proven for _ in range(400))
    assert 5 <= proven <= 40  # 5 % of 400, approximately


def test_factors_that_the_variants_cannot_separate_have_no_number() -> None:
    settings = [{"a": "0", "b": "0"}, {"a": "1", "b": "1"}] * 3
    effects = by_name(knob_effects(settings, [1.0, 2.0] * 3))
    assert effects["a=1"].percent == pytest.approx(100)
    assert effects["b=1"].percent is None
    assert not effects["b=1"].proven


def test_a_knob_with_three_levels_is_compared_with_its_first() -> None:
    settings = [{"cpus": level} for level in ("1", "2", "4") for _ in range(2)]
    effects = by_name(knob_effects(settings, [100, 100.001, 190, 190.001, 350, 350.001]))
    assert effects["cpus=2"].percent == pytest.approx(90, abs=0.01)
    assert effects["cpus=4"].percent == pytest.approx(250, abs=0.01)


def test_one_value_each_gives_no_interval() -> None:
    (effect,) = knob_effects([{"a": "0"}, {"a": "1"}], [10, 11])
    assert effect.percent == pytest.approx(10)
    assert (effect.low, effect.high, effect.proven) == (None, None, False)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 0.0], [1.0, math.nan]])
def test_bad_input_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match=r"value"):
        knob_effects([{"a": "0"}, {"a": "1"}], values)
