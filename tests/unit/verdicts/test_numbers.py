# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

import math
from datetime import timedelta

import pytest

from perfweb.verdicts.numbers import MINUS, NOTHING, THIN_SPACE, duration, grouped, percent, scale_for


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
    ("seconds", "text"),
    [(0.42, "0.4 s"), (12, "12 s"), (59.6, "1 min 0 s"), (252, "4 min 12 s"), (7260, "2 h 1 min"), (None, NOTHING)],
)
def test_durations(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text
    assert duration(timedelta(seconds=seconds) if seconds is not None else None) == text
