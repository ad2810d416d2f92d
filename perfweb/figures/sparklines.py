# SPDX-License-Identifier: BSD-2-Clause
"""Small graphs without axes, for the cells of a table: the newest values of a series, the newest one marked."""

from __future__ import annotations

from collections.abc import Sequence

WIDTH, HEIGHT = 96, 20
_MARGIN = 2.5
"""Pixels around the line, so that the mark of the newest value is not cut off."""


def sparkline(values: Sequence[float]) -> str:
    """Return the values, the oldest first, as SVG from their minimum to their maximum; an empty text for less than two.

    The graph is hidden from screen readers: the cell has the newest value and the verdict in words.
    """
    if len(values) < 2:
        return ""
    low, high = min(values), max(values)
    # A series without any change is a line in the middle. Halves, because a difference of two floats may overflow.
    half = high / 2 - low / 2
    across, down = WIDTH - 2 * _MARGIN, HEIGHT - 2 * _MARGIN
    places = [
        (
            _MARGIN + across * place / (len(values) - 1),
            _MARGIN + down * ((high / 2 - value / 2) / half if half else 0.5),
        )
        for place, value in enumerate(values)
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    x, y = places[-1]
    return (
        f'<svg class="sparkline" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" aria-hidden="true">'
        f'<polyline points="{line}"/><circle cx="{x:.1f}" cy="{y:.1f}" r="2"/></svg>'
    )
