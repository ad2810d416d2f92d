# SPDX-License-Identifier: BSD-2-Clause
"""Differences by function: planted ones are found exactly, and what varies by itself is not attributed."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from perfweb.counted import comparison
from perfweb.counted.comparison import FunctionDifference, LoadComparison, Verdict
from perfweb.counted.costs import BootCosts, Cost, Window, of_windows
from runners.counted import table
from runners.counted.command import Result

NAME, UNITS = "counted.tcp.rr/local/ipv4", 64


def window(**functions: float | Cost) -> Window:
    costs = {name: cost if isinstance(cost, Cost) else Cost(cost) for name, cost in functions.items()}
    return Window(functions={name: Cost(*(UNITS * value for value in cost)) for name, cost in costs.items()})


def side(*values: float | Cost, noisy: tuple[float, ...] = (100.0,)) -> list[list[Window]]:
    """Three boots, whose function `noisy` has another value in each window."""
    return [
        [window(steady=value, noisy=noisy[(boot + n) % len(noisy)]) for n in range(5)]
        for boot in range(3)
        for value in values
    ]


def compare(base: list[list[Window]], patched: list[list[Window]]) -> LoadComparison:
    return comparison.compare(NAME, costs(base), costs(patched))


def costs(boots: list[list[Window]]) -> list[BootCosts]:
    return [of_windows(UNITS, windows) for windows in boots]


def test_equal_sides_are_equal() -> None:
    found = compare(side(50), side(50))
    assert (found.functions, found.verdict, found.spread) == ((), Verdict.EQUAL, 0)


def test_straight_line_code_is_exact() -> None:
    found = compare(side(50, noisy=(90, 100, 130)), side(70, noisy=(90, 100, 130)))
    assert found.functions == (FunctionDifference("steady", Cost(20, 0, 0)),)
    assert found.verdict == Verdict.MORE


def test_code_of_some_windows_only_is_printed_but_not_attributed() -> None:
    """A flush in one of five windows: the lowest and the median window are as before."""
    flushed = [[*boot[:4], window(steady=50, noisy=100, flush=500)] for boot in side(50)]
    found = compare(side(50), flushed)
    assert (found.functions, found.verdict, found.unexplained) == ((), Verdict.EQUAL, 100)
    printed = "\n".join(table.lines([found], 3))
    assert "? not attributable: instructions of some windows only" in printed
    assert "+100.00  round trip" in printed


def test_a_function_that_is_gone_and_one_that_is_new() -> None:
    base, patched = [[window(old=5)]] * 3, [[window(new=3)]] * 3
    found = compare(base, patched)
    assert found.functions == (FunctionDifference("old", Cost(-5)), FunctionDifference("new", Cost(3)))
    assert found.verdict == Verdict.FEWER


def test_an_atomic_instead_of_a_plain_instruction_is_more() -> None:
    found = compare(side(Cost(50, 0, 9)), side(Cost(50, 2, 9)))
    assert found.functions == (FunctionDifference("steady", Cost(0, 2, 0)),)
    assert found.verdict == Verdict.MORE


def test_a_tick_in_some_windows_does_not_hide_a_difference() -> None:
    def ticking(value: float) -> list[list[Window]]:
        return [[window(steady=value + (40 if n == boot else 0)) for n in range(5)] for boot in range(3)]

    assert compare(ticking(50), ticking(51)).functions == (FunctionDifference("steady", Cost(1)),)


def test_what_varies_between_boots_is_not_attributed() -> None:
    base = [[window(hashed=value)] * 5 for value in (50, 55, 50)]
    patched = [[window(hashed=value)] * 5 for value in (55, 50, 55)]
    assert compare(base, patched).functions == ()


def test_what_differs_by_less_than_it_varies_is_not_attributed() -> None:
    base = [[window(hashed=value)] * 5 for value in (50, 55, 50)]
    assert compare(base, [[window(hashed=value)] * 5 for value in (56, 63, 63)]).functions == ()
    assert compare(base, [[window(hashed=56)] * 5] * 3).functions != ()


def test_less_than_one_instruction_in_two_units_is_not_attributed() -> None:
    assert compare(side(50), side(50.4)).functions == ()


VALUES = st.lists(st.integers(0, 40), min_size=3, max_size=3)
BOOTS = st.lists(VALUES, min_size=3, max_size=3)


def boots(values: list[list[int]]) -> list[list[Window]]:
    return [[window(f=value, g=7) for value in boot] for boot in values]


@given(BOOTS, BOOTS)
def test_sides_exchanged_change_the_sign(first: list[list[int]], second: list[list[int]]) -> None:
    there, back = compare(boots(first), boots(second)), compare(boots(second), boots(first))
    assert there.attributed == Cost(*(-value for value in back.attributed))


@given(BOOTS, BOOTS)
def test_a_shared_value_in_the_spans_is_never_attributed(first: list[list[int]], second: list[list[int]]) -> None:
    """A lowest window that both sides have cannot be a difference."""
    low = min(value for boot in first + second for value in boot)
    for values in (first, second):
        values[0][0] = low
    assert compare(boots(first), boots(second)).functions == ()


@given(BOOTS, st.integers(1, 500))
def test_a_constant_above_all_noise_is_found_exactly(noise: list[list[int]], added: int) -> None:
    found = compare(boots(noise), [[window(f=value, g=7 + added) for value in boot] for boot in noise])
    assert found.functions == (FunctionDifference("g", Cost(added)),)


def test_the_table_names_functions_and_is_labelled() -> None:
    loads = [
        compare(side(50), side(Cost(70, 2, 1))),
        comparison.compare("counted.udp.rr/local/ipv4", costs(side(5)), costs(side(5))),
    ]
    text = "\n".join(table.lines(loads, 3))
    assert text.startswith("counted, not measured")
    head = "▲ counted.tcp.rr/local/ipv4: +20.00 instructions, +2.00 locked instructions, +1.00 memory accesses"
    assert f"{head} for each round trip" in text
    assert f"    {'steady':<34}{'+20.0000':>14}{'+2.0000':>12}{'+1.0000':>12}" in text
    assert text.endswith("1 more, 0 fewer, 1 equal (counted)")


def test_the_document_is_marked() -> None:
    written = json.loads(json.dumps(table.document(Result([compare(side(50), side(70))]))))
    assert written["counted"] is True
    assert written["loads"][0]["functions"] == [
        {"name": "steady", "instructions": 20.0, "locked": 0.0, "accesses": 0.0}
    ]
