# SPDX-License-Identifier: BSD-2-Clause
"""The choice of the next measurement."""

from hypothesis import given
from hypothesis import strategies as st

from perfweb.tracking.choosing import Candidate, next_position


def candidates(text: str) -> list[Candidate]:
    """`m` was measured, `w` is wanted, `.` is not."""
    return [Candidate(place, letter != ".", letter == "m") for place, letter in enumerate(text, start=1)]


def test_the_newest_wanted_commit_comes_first() -> None:
    assert next_position(candidates("mwwmww.")) == 6


def test_then_the_middle_between_two_that_differ_wanted_or_not() -> None:
    assert next_position(candidates("wwm...mwm"), [(3, 7)]) == 5
    assert next_position(candidates("wwm.m.mwm"), [(3, 5), (7, 9)]) == 4
    assert next_position(candidates("wwmmm"), [(3, 4)]) == 1, "there is nothing between them"


def test_then_the_oldest_gap() -> None:
    assert next_position(candidates("m.wmwm")) == 3


def test_nothing_is_left() -> None:
    assert next_position(candidates("m..m.")) is None
    assert next_position([]) is None


@given(st.text("mw.", max_size=30))
def test_everything_wanted_is_measured_once(text: str) -> None:
    left = candidates(text)
    order = []
    while (place := next_position(left)) is not None:
        order.append(place)
        left[place - 1] = Candidate(place, wanted=True, tried=True)
    assert sorted(order) == [place for place, letter in enumerate(text, start=1) if letter == "w"]
