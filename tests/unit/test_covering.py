# SPDX-License-Identifier: BSD-2-Clause
"""Covering arrays: every possible tuple occurs, and no impossible one."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from tests.stack.covering import Covering

FACTORS = st.lists(st.integers(1, 4), min_size=1, max_size=5).map(
    lambda sizes: {f"f{i}": [f"{i}.{value}" for value in range(size)] for i, size in enumerate(sizes)}
)


@st.composite
def _problems(draw: st.DrawFn) -> tuple[dict[str, list[str]], int, set[frozenset[tuple[str, str]]]]:
    """Factors, a strength, and some pairs of choices that exclude each other."""
    factors = draw(FACTORS)
    choices = [(name, value) for name, values in factors.items() for value in values]
    pair = st.frozensets(st.sampled_from(choices), min_size=1, max_size=2)
    return factors, draw(st.integers(1, 3)), draw(st.sets(pair, max_size=4))


@given(_problems())
def test_rows_are_allowed_and_cover_all_that_is(
    problem: tuple[dict[str, list[str]], int, set[frozenset[tuple[str, str]]]],
) -> None:
    factors, strength, forbidden = problem

    def refused(row: Mapping[str, str]) -> bool:
        return any(pair <= row.items() for pair in forbidden)

    rows = Covering(factors, strength, refused).rows()
    all_rows = (dict(zip(factors, values, strict=True)) for values in itertools.product(*factors.values()))
    allowed = [row for row in all_rows if not refused(row)]
    assert all(row in allowed for row in rows)

    def parts(some: list[dict[str, str]]) -> set[tuple[tuple[str, str], ...]]:
        return {part for row in some for part in itertools.combinations(row.items(), min(strength, len(factors)))}

    assert parts(rows) == parts(allowed)


def test_a_pairwise_set_is_small_and_always_the_same() -> None:
    factors = {f"f{i}": ["a", "b", "c"] for i in range(13)}
    rows = Covering(factors, 2, lambda _row: False).rows()
    assert len(rows) <= 25  # 15 are known to be enough, of 1594323
    assert rows == Covering(factors, 2, lambda _row: False).rows()
