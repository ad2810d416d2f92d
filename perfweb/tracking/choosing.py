# SPDX-License-Identifier: BSD-2-Clause
"""The next commit of a branch to measure: the one with the most information."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Candidate:
    """A commit by its position; `tried` is set if it was measured, or could not be."""

    position: int
    wanted: bool
    tried: bool


def next_position(candidates: Sequence[Candidate], differing: Sequence[tuple[int, int]] = ()) -> int | None:
    """Return the position of the commit to measure next, None if there is none.

    `differing` are pairs of neighbouring measured positions whose results differ, the most certain difference first.
    The newest wanted commit comes first, because users wait for that one; then the middle between two that differ,
    wanted or not, which halves the range of a change; then the oldest skipped commit that is wanted.
    """
    untried = [candidate for candidate in candidates if not candidate.tried]
    wanted = sorted(candidate.position for candidate in untried if candidate.wanted)
    newest = max((candidate.position for candidate in candidates if candidate.tried), default=0)
    if wanted and wanted[-1] > newest:
        return wanted[-1]
    for low, high in differing:
        between = sorted(candidate.position for candidate in untried if low < candidate.position < high)
        if between:
            return between[len(between) // 2]
    return wanted[0] if wanted else None
