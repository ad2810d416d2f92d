# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

import math
from datetime import timedelta

import pytest

from perfweb.verdicts.numbers import MINUS, NOTHING, THIN_SPACE, TIMES, duration, grouped, interval, percent, scale_for


@pytest.mark.parametrize(
    ("value", "unit", "text", "written_unit"),
    [
        (14.0251e9, "bits/s", "14.025", "Gbit/s"),
        (999.0, "bits/s", "999.00", "bit/s"),
        (41_884.3, "transactions/s", f"41{THIN_SPACE}884", "transactions/s"),
        (47.756, "us", "47.756", "µs"),
        (0.0, "us", "0.0000", "µs"),
    ],
)
def test_values_have_five_digits_and_readable_units(value: float, unit: str, text: str, written_unit: str) -> None:
    scale = scale_for(unit, value)
    assert (scale.text(value), scale.unit) == (text, written_unit)


def test_what_is_not_known_is_a_dash() -> None:
    assert scale_for("us", 1).text(None) == NOTHING
    assert scale_for("us", 1).text(math.nan) == NOTHING
    assert percent(None) == NOTHING


def test_signs() -> None:
    assert grouped(-1234.5, 1) == f"{MINUS}1{THIN_SPACE}234.5"
    assert percent(-8.0, signed=True) == f"{MINUS}8.00{THIN_SPACE}%"
    assert percent(8.0, signed=True) == f"+8.00{THIN_SPACE}%"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (115168.7, "*1_153"), (1400.0, "*15.0"), (900.0, "*10.0"), (899.99, "+899.99_%"), (0.0, "+0.00_%"),
        (-99.99, "-99.99_%"), (-2000.0, "-2_000.00_%"),
    ],
)  # fmt: skip
def test_a_large_change_is_a_factor(value: float, text: str) -> None:
    assert percent(value, signed=True) == text.replace("_", THIN_SPACE).replace("-", MINUS).replace("*", TIMES)


def test_an_interval_has_one_unit() -> None:
    assert interval(8.0, 7.1, 8.9) == f"+8.00{THIN_SPACE}% (+7.10 to +8.90)"
    assert (
        interval(115168.7, 110000, 120000)
        == f"{TIMES}1{THIN_SPACE}153 ({TIMES}1{THIN_SPACE}101 to {TIMES}1{THIN_SPACE}201)"
    )
    assert interval(850.0, -50.0, 1900.0) == f"{TIMES}9.50 ({TIMES}0.50 to {TIMES}20.0)"
    assert interval(2000.0, -150.0, 4000.0) == f"{TIMES}21.0 ({MINUS}150.00 to {TIMES}41.0)"


def test_a_large_share_has_its_thousands_apart() -> None:
    assert percent(1234.5) == f"1{THIN_SPACE}234.50{THIN_SPACE}%"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.42, "0.4 s"), (12, "12 s"), (59.6, "1 min 0 s"), (252, "4 min 12 s"), (7260, "2 h 1 min"), (None, NOTHING)],
)
def test_durations(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text
    assert duration(timedelta(seconds=seconds) if seconds is not None else None) == text
