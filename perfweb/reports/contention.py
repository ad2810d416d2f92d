# SPDX-License-Identifier: BSD-2-Clause
"""Contention of locks before and after a change, published and measured.

The numbers are failed attempts from the columns cnt_hold and count of profiles as of 2006. How many attempts fail
depends on other load of the host, and changes from boot to boot. Their distribution among the locks changes much less,
so shares are compared.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from perfweb.reports.agreement import PublishedChange, agreement
from perfweb.runs.models import Variant
from perfweb.stats.comparison import Comparison, Direction, compare
from perfweb.verdicts.counters import reports_of
from perfweb.verdicts.lockprofiles import read_profile
from perfweb.verdicts.sides import Side

VIEW = "mutexprof"
MILLION = 1_000_000

Counts = Mapping[str, tuple[float, float]]
"""Failed attempts and acquisitions, by the name of a lock."""


@dataclass(frozen=True)
class Failed:
    """The failed attempts to get a lock: their share in percent of those at all listed locks, and their number for a
    million acquisitions.
    """

    share: float
    per_million: float


@dataclass(frozen=True)
class LockRow:
    """A lock before and after, published and measured: None if the list does not have it, or no boot acquired it."""

    name: str
    there: list[Failed | None]
    here: list[Failed | None]
    words: str


@dataclass(frozen=True)
class Contention:
    """The locks of two variants of a run, in the published order; None if the run has no such variant."""

    before: Variant | None
    after: Variant | None
    rows: list[LockRow]


def moved(variants: Mapping[str, Variant], published: Mapping[str, Any]) -> Contention:
    """Compare the published contention of locks with that of the boots of two variants."""
    before, after = (variants.get(published[when]) for when in ("before", "after"))
    known = [Side(variant.name, variant.name, [variant], {}) for variant in (before, after) if variant]
    texts = reports_of(known, [VIEW])[VIEW] if before and after else [[], []]
    locks = published["locks"]
    places = {fields["name"]: fields["ours"] for fields in locks if "ours" in fields}
    here = [[failed(counted(text, places)) for text in boots] for boots in texts]
    there = [failed({fields["name"]: fields[when] for fields in locks if when in fields}) for when in ("was", "is")]
    names = [fields["name"] for fields in locks]
    return Contention(before, after, [_row(name, [side.get(name) for side in there], here, places) for name in names])


def counted(text: str, places: Mapping[str, str]) -> Counts:
    """Add up a profile for each lock, over the places that match its pattern, without locks that were never
    acquired.
    """
    profile = read_profile(text)
    found = {}
    for name, place in places.items():
        costs = [numbers for site, numbers in profile.items() if re.search(place, site)]
        acquired = sum(numbers["count"] for numbers in costs)
        if acquired:
            found[name] = (sum(numbers.get("cnt_hold", 0.0) for numbers in costs), acquired)
    return found


def failed(counts: Counts) -> dict[str, Failed]:
    """Return the share of each lock in the failed attempts, by name; empty without failed attempts."""
    total = sum(attempts for attempts, _ in counts.values())
    return {
        name: Failed(100 * attempts / total, MILLION * attempts / acquired)
        for name, (attempts, acquired) in counts.items()
        if total
    }


def _row(
    name: str, there: list[Failed | None], boots: Sequence[Sequence[Mapping[str, Failed]]], places: Mapping[str, str]
) -> LockRow:
    if name not in places:
        return LockRow(name, there, [None, None], "no such lock here")
    sides = [[boot[name] for boot in side if name in boot] for side in boots]
    before, after = ([one.share for one in side] for side in sides)
    return LockRow(name, there, [_mean(side) for side in sides], _words(there, compare(before, after, Direction.LOWER)))


def _mean(boots: Sequence[Failed]) -> Failed | None:
    if not boots:
        return None
    return Failed(fmean(boot.share for boot in boots), fmean(boot.per_million for boot in boots))


def _words(there: Sequence[Failed | None], result: Comparison) -> str:
    if result.a and result.b and result.a.maximum == result.b.maximum == 0:
        return "no attempt failed here"
    was, now = (found.share if found else 0.0 for found in there)
    return agreement(PublishedChange((now > was) - (now < was), None), result)
