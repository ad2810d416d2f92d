# SPDX-License-Identifier: BSD-2-Clause
"""Changes planted in Linux: each is named with its function and its cost, or equal (planted.py)."""

from __future__ import annotations

import pytest

from tests.counted.planted import GROUPS, PLANTED, Counts, rows


@pytest.fixture(scope="module")
def counts() -> Counts:
    return Counts(boots=3)


def test_six_of_nineteen_changes_are_equal() -> None:
    assert (len(PLANTED), len([one for one in PLANTED if not one.function])) == (19, 6)


@pytest.mark.thorough
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("group", GROUPS)
def test_each_change_is_named_with_its_cost(counts: Counts, group: str) -> None:
    assert [row for good, row in rows(group, counts.compare(group)) if not good] == []
