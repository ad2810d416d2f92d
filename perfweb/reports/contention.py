# SPDX-License-Identifier: BSD-2-Clause
"""Where contention moved: how often locks could not be had, before a change and after it, there and here.

Numbers are failed attempts for a million acquisitions, from the columns cnt_hold and count of profiles as of 2006.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perfweb.reports.agreement import PublishedChange, agreement
from perfweb.reports.counters import last_words
from perfweb.reports.lockprofiles import read_profile
from perfweb.reports.sides import Side
from perfweb.runs.models import Variant
from perfweb.stats.comparison import Comparison, Direction, compare

VIEW = "mutexprof"
MILLION = 1_000_000


@dataclass(frozen=True)
class LockRow:
    """A lock before and after, there and here: None where the list did not have it, or no boot got it."""

    name: str
    there: list[float | None]
    here: list[float | None]
    words: str


@dataclass(frozen=True)
class Contention:
    """The locks of two variants of a run, in the order of what was published; None: the run has no such variant."""

    before: Variant | None
    after: Variant | None
    rows: list[LockRow]


def moved(variants: Mapping[str, Variant], published: Mapping[str, Any]) -> Contention:
    """Put the published contention of locks beside that of the boots of two variants."""
    before, after = (variants.get(published[when]) for when in ("before", "after"))
    known = [Side(variant.name, variant.name, [variant], {}) for variant in (before, after) if variant]
    told = last_words(known, [VIEW])[VIEW] if before and after else [[], []]
    return Contention(before, after, [_row(fields, told) for fields in published["locks"]])


def failed_attempts(text: str, place: str) -> float | None:
    """Return the failed attempts for a million acquisitions, over the places of a profile that match a pattern."""
    costs = [numbers for name, numbers in read_profile(text).items() if re.search(place, name)]
    count = sum(numbers["count"] for numbers in costs)
    return MILLION * sum(numbers.get("cnt_hold", 0.0) for numbers in costs) / count if count else None


def _row(fields: Mapping[str, Any], told: Sequence[Sequence[str]]) -> LockRow:
    there = [MILLION * fields[when][0] / fields[when][1] if when in fields else None for when in ("was", "is")]
    if "ours" not in fields:
        return LockRow(fields["name"], there, [None, None], "no such lock here")
    before, after = (_attempts(boots, fields["ours"]) for boots in told)
    result = compare(before, after, Direction.LOWER)
    here = [side.mean if side else None for side in (result.a, result.b)]
    return LockRow(fields["name"], there, here, _words(there, result))


def _attempts(boots: Sequence[str], place: str) -> list[float]:
    found = (failed_attempts(text, place) for text in boots)
    return [failed for failed in found if failed is not None]


def _words(there: Sequence[float | None], result: Comparison) -> str:
    if result.a and result.b and result.a.maximum == result.b.maximum == 0:
        return "no attempt failed here"
    was, now = (number or 0.0 for number in there)
    return agreement(PublishedChange((now > was) - (now < was), None), result)
