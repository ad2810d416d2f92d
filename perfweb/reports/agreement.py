# SPDX-License-Identifier: BSD-2-Clause
"""Whether a published change and a measured one agree, in words."""

from __future__ import annotations

from dataclasses import dataclass

from perfweb.stats.comparison import Comparison
from perfweb.verdicts.numbers import percent


@dataclass(frozen=True)
class PublishedChange:
    """Its sign, 0 for none; its size in percent, None if only the sign was published; `error` is half of the published
    interval, if there was one.
    """

    sign: int
    percent: float | None
    error: float | None = None

    @property
    def words(self) -> str:
        if not self.sign:
            return "none"
        if self.percent is None:
            return "higher" if self.sign > 0 else "lower"
        given = percent(self.percent, signed=True)
        return given if self.error is None else f"{given} ±{percent(self.error)}"

    def meets(self, low: float, high: float) -> bool:
        """Whether its interval and another one, in percent, overlap."""
        if self.percent is None:
            return False
        error = self.error or 0.0
        return self.percent - error <= high and low <= self.percent + error


def agreement(published: PublishedChange, found: Comparison | None) -> str:
    """Describe the agreement. An unproven change has no sign."""
    if found is None or found.a is None or found.b is None:
        return "not measured here"
    if found.effect is None:
        return "not enough data here"
    ours = found.effect.interval
    if found.lack is not None or not found.effect.proven:
        return f"no difference proven; the run could have seen {percent(found.effect.detectable)}"
    if not published.sign:
        return "a difference here, none there"
    if (ours.percent > 0) != (published.sign > 0):
        return "the other sign"
    return "the same sign, and the size agrees" if published.meets(ours.low, ours.high) else "the same sign"
