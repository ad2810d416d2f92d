# SPDX-License-Identifier: BSD-2-Clause
"""Axes of the figures that perfweb.figures.svg draws: positions of values, and labelled ticks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from perfweb.verdicts.numbers import grouped

_TICKS = 6
_MARGIN = 0.05
_MINUTE, _HOUR, _DAY = 60e3, 3600e3, 86400e3
_STEPS = (
    *(count * _MINUTE for count in (1, 5, 15)),
    *(count * _HOUR for count in (1, 3, 6, 12)),
    *(count * _DAY for count in (1, 2, 7, 14, 30, 91, 182, 365, 730, 1826)),
)


@dataclass(frozen=True)
class Axis:
    """Maps values, numbers or names of categories, to pixels between `start` and `end`."""

    title: str
    low: float
    high: float
    start: float
    end: float
    categories: tuple[str, ...]
    ticks: tuple[tuple[float, str], ...]
    zero: float | None
    """Position of the line at zero, if the figure has one."""
    logarithmic: bool = False
    """Whether `low` and `high` are decimal logarithms of values."""

    @classmethod
    def of(cls, layout: dict[str, Any], values: Sequence[Any], start: float, end: float) -> Axis:
        """Return the axis that Plotly's `layout` describes for these values."""
        categories = _categories(layout, values)
        logarithmic = layout.get("type") == "log"
        plain = [math.log10(value) for value in values] if logarithmic else values
        low, high = (-0.5, len(categories) - 0.5) if categories else _range(layout, plain)
        title = layout.get("title", {}).get("text", "")
        bare = cls(title, low, high, start, end, categories, (), None, logarithmic)
        if categories:
            marks = [(float(place), name) for place, name in enumerate(categories)]
        elif "tickvals" in layout:
            marks = list(zip(layout["tickvals"], layout.get("ticktext", map(str, layout["tickvals"])), strict=True))
        elif logarithmic:
            marks = log_ticks(low, high)
        elif layout.get("type") == "date":
            marks = date_ticks(low, high)
        else:
            marks = nice_ticks(low, high)
        ticks = tuple((bare.place(value) if not categories else bare._pixel(value), text) for value, text in marks)
        zero = bare.place(0.0) if layout.get("zeroline") and low <= 0 <= high and not categories else None
        return replace(bare, ticks=ticks, zero=zero)

    def place(self, value: Any) -> float:
        """Return the pixel of a value."""
        if self.logarithmic:
            return self._pixel(math.log10(value))
        return self._pixel(float(self.categories.index(value)) if self.categories else value)

    def places(self, values: Sequence[Any]) -> list[float]:
        """Return the pixels of many values."""
        if not self.categories and not self.logarithmic:
            scale = (self.end - self.start) / (self.high - self.low)
            return [self.start + (value - self.low) * scale for value in values]
        return [self.place(value) for value in values]

    def _pixel(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def _categories(layout: dict[str, Any], values: Sequence[Any]) -> tuple[str, ...]:
    if layout.get("categoryarray"):
        return tuple(layout["categoryarray"])
    return tuple(dict.fromkeys(value for value in values if isinstance(value, str)))


def _range(layout: dict[str, Any], values: Sequence[float]) -> tuple[float, float]:
    if "range" in layout:
        low, high = layout["range"]
        return low, high
    ends = [*values, 0.0] if layout.get("rangemode") == "tozero" else list(values)
    low, high = (min(ends), max(ends)) if ends else (0.0, 1.0)
    largest = max(abs(low), abs(high))
    # Values that double precision hardly distinguishes are drawn as one, and so are subnormal ones.
    margin = _MARGIN * (high - low if high - low > 1e-9 * largest else largest)
    return (low - margin, high + margin) if margin > 1e-290 else (low - 1.0, high + 1.0)


def nice_ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Return up to seven round numbers between `low` and `high` with their texts: multiples of 1, 2 or 5 times a power
    of ten (Heckbert 1990, "Nice numbers for graph labels", Graphics Gems).
    """
    rough = (high - low) / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999999)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [(index * step, grouped(index * step, decimals)) for index in range(first, last + 1)]


def log_ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Return round numbers whose decimal logarithms lie between `low` and `high`, with their texts: powers of ten, and
    two and five times these where there are few, or evenly spaced ones where the range is less than that.
    """
    powers = range(math.floor(low), math.ceil(high) + 1)
    for factors in ((1,), (1, 2, 5)):
        values = [factor * 10.0**power for power in powers for factor in factors]
        found = [value for value in values if low <= math.log10(value) <= high]
        if len(found) > 2:
            break
    if len(found) < 2:
        return [(value, text) for value, text in nice_ticks(10**low, 10**high) if value > 0]
    every = -(-len(found) // _TICKS) or 1
    return [(value, grouped(value, max(0, -math.floor(math.log10(value))))) for value in found[::every]]


def date_ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Return up to seven evenly spaced times between `low` and `high`, both in milliseconds since 1970, with their
    texts: days, or hours and minutes if the range is within days.
    """
    step = next((step for step in _STEPS if (high - low) / step <= _TICKS), (high - low) / _TICKS)
    form = "%Y-%m-%d" if step >= _DAY else "%m-%d %H:%M"
    first, last = math.ceil(low / step), math.floor(high / step)
    marks = [index * step for index in range(first, last + 1)]
    return [(mark, datetime.fromtimestamp(mark / 1000, UTC).strftime(form)) for mark in marks]
