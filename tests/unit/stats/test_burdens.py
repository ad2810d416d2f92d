# SPDX-License-Identifier: BSD-2-Clause
"""How `./dev bench branch` finds burdens with their nominal cost, although code layout makes costs jump."""

import statistics

import pytest

from tests.bench.burdens import FILE, FIRST, FUNCTION, Burden, NoBurdenError, chained, fitting, shifts
from tests.stack.builds import ROOT


def rates(turns: int) -> list[float]:
    """A percent for 25 iterations, a jump at 290, and one seed of eight that differs from 300 on."""
    percent = -turns / 25 - (0.3 if turns >= 290 else 0)
    return [5000 * (1 + percent / 100) - (50 if seed == 0 and 298 <= turns <= 302 else 0) for seed in range(8)]


@pytest.mark.parametrize("percent", [-1, -3, 12, -7])
def test_a_burden_costs_what_it_is_named(percent: float) -> None:
    start = 300 if percent == 12 else 263
    found = shifts(rates(start), rates(fitting(rates, start, percent)))
    assert statistics.fmean(found) == pytest.approx(percent, abs=0.2)
    assert percent == 12 or max(found) - min(found) < 0.2, "all seeds agree"


def test_what_no_burden_costs_is_refused() -> None:
    with pytest.raises(NoBurdenError, match=r"no burden moves TCP by \+30 %"):
        fitting(rates, 100, 30)
    with pytest.raises(SystemExit, match=r"by \+30 %.*\n.*by \+30 %.*"):
        chained(rates, [30])


def test_where_a_jump_leaves_out_a_change_it_begins_behind_the_jump() -> None:
    def jumping(turns: int) -> list[float]:
        return [5000 * (1 - (turns / 25 + (3 if turns >= 280 else 0)) / 100)] * 8

    with pytest.raises(NoBurdenError):
        fitting(jumping, 263, -1)
    first, *others = chained(jumping, [-1, -7])
    assert first == 288
    assert [shifts(jumping(a), jumping(b))[0] for a, b in zip([first, *others], others, strict=False)] == pytest.approx(
        [-1, -7], abs=0.05
    )


def test_a_burden_is_planted_where_a_segment_begins() -> None:
    text = f"/* Before. */\n{FUNCTION}\tint x;\n\n{FIRST} The rest. */\n}}\n"
    planted = Burden(7, crowd=True).planted(text)
    assert planted.index("} crowd[128];") < planted.index("tcp_input(")
    assert planted.index("n < 7;") < planted.index("&crowd[n].seen") < planted.index(FIRST)
    assert Burden(7).planted((ROOT / FILE).read_text(encoding="utf-8"))
    with pytest.raises(SystemExit, match=r"another tcp_input\(\) now"):
        Burden(7).planted("int main;\n")
