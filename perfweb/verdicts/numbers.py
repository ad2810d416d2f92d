# SPDX-License-Identifier: BSD-2-Clause
"""Number formats for readers: one scale for all numbers that are compared."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta

# Units that are read with SI prefixes, and how they are then abbreviated.
_PREFIXED = {"bits/s": "bit/s", "bytes/s": "B/s"}
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_SPELLED = {"us": "µs"}
_SIGNIFICANT_DIGITS = 5
LARGE_PERCENT = 900.0
"""Min change in percent that is written as a factor: the value is at least tenfold."""

NOTHING = "\N{EN DASH}"
"""The text for a missing number."""

TIMES = "\N{MULTIPLICATION SIGN}"
MINUS = "\N{MINUS SIGN}"
THIN_SPACE = "\N{NARROW NO-BREAK SPACE}"


@dataclass(frozen=True)
class Scale:
    """Writes values of one unit with the same factor and the same number of decimals, so that columns line up."""

    unit: str
    factor: float
    decimals: int

    def text(self, value: float | None) -> str:
        """Return the value without its unit, NOTHING for None and NaN."""
        if value is None or math.isnan(value):
            return NOTHING
        return grouped(value / self.factor, self.decimals)


def scale_for(unit: str, magnitude: float) -> Scale:
    """Return the scale on which a value of about `magnitude` (in `unit`) has five digits or more."""
    magnitude = abs(magnitude)
    factor, prefix = 1.0, ""
    if unit in _PREFIXED:
        factor, prefix = next((pair for pair in _PREFIXES if magnitude >= pair[0]), (1.0, ""))
    before_point = math.floor(math.log10(magnitude / factor)) + 1 if magnitude else 1
    decimals = min(max(_SIGNIFICANT_DIGITS - before_point, 0), 12)
    return Scale(prefix + _PREFIXED.get(unit, _SPELLED.get(unit, unit)), factor, decimals)


def grouped(value: float, decimals: int) -> str:
    """Return the number with thin spaces between thousands and a real minus sign."""
    return f"{value:,.{decimals}f}".replace(",", THIN_SPACE).replace("-", MINUS)


def percent(value: float | None, *, signed: bool = False) -> str:
    """Return a percentage with two decimals, NOTHING for None and NaN.

    A signed one is a change: "+8.00 %", or its factor as factor() writes it, where the value is at least tenfold.
    """
    if value is None or math.isnan(value):
        return NOTHING
    if signed and value >= LARGE_PERCENT:
        return factor(value)
    sign = "+" if signed and not math.copysign(1.0, value) < 0 else ""
    return f"{sign}{grouped(value, 2)}{THIN_SPACE}%"


def factor(value: float) -> str:
    """Return a change in percent as the factor between the two values, with three digits or more."""
    times = 1 + value / 100
    return f"{TIMES}{grouped(times, 0 if abs(times) >= 100 else 1 if abs(times) >= 10 else 2)}"


def interval(value: float, low: float, high: float) -> str:
    """Return a change with its interval, all in percent: "+8.00 % (+7.10 to +8.90)". A change that is written as a
    factor has an interval of factors.
    """
    if max(value, high) >= LARGE_PERCENT and low > -100:
        return f"{factor(value)} ({factor(low)} to {factor(high)})"
    low_words, high_words = (percent(end, signed=True).removesuffix("%").rstrip() for end in (low, high))
    return f"{percent(value, signed=True)} ({low_words} to {high_words})"


def duration(length: timedelta | float | None) -> str:
    """Return a length of time (a timedelta or seconds) in the two largest units: "4 min 12 s"."""
    if length is None:
        return NOTHING
    seconds = length.total_seconds() if isinstance(length, timedelta) else length
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
