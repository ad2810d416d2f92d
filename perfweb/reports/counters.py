# SPDX-License-Identifier: BSD-2-Clause
"""Counters that booted systems told at their end, side by side."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db.models import Q

from perfweb.reports.sides import Side
from perfweb.runs.models import Artefact, ArtefactKind

MOST_ROWS = 25
_LINE = re.compile(r"([A-Za-z_][\w.%-]{0,127}): (-?\d{1,18})", re.ASCII)


@dataclass(frozen=True)
class CounterRow:
    """One counter: its mean per boot on each side, None where no boot told it."""

    name: str
    means: list[float | None]

    @property
    def spread(self) -> float:
        """The greatest ratio between two sides, as a number that grows with how much they differ."""
        known = [mean for mean in self.means if mean is not None]
        return (max(known) + 1) / (min(known) + 1) if len(known) > 1 else 0.0


def read_counters(text: str) -> dict[str, int]:
    """Read lines `name: number` as `sysctl -a` prints them; other lines (words, strings) are no counters."""
    found = (_LINE.fullmatch(line.strip()) for line in text.splitlines())
    return {match[1]: int(match[2]) for match in found if match}


def counter_rows(sides: Sequence[Side]) -> list[CounterRow]:
    """List the counters that differ most between the sides, at most MOST_ROWS: one query."""
    side_of = {variant.pk: place for place, side in enumerate(sides) for variant in side.variants}
    texts = Artefact.objects.filter(
        Q(kind=ArtefactKind.COUNTERS) & Q(name__endswith="counters-sysctl.txt"), boot__variant__in=side_of
    ).values_list("boot__variant_id", "content")
    told: list[list[dict[str, int]]] = [[] for _ in sides]
    for variant, content in texts:
        told[side_of[variant]].append(read_counters(bytes(content).decode("utf-8", "replace")))
    counters = sorted({name for boots in told for boot in boots for name in boot})
    rows = [CounterRow(name, [_mean(boot.get(name) for boot in boots) for boots in told]) for name in counters]
    differing = [row for row in rows if row.spread > 1 and min(mean or 0 for mean in row.means) >= 0]
    return sorted(differing, key=lambda row: -row.spread)[:MOST_ROWS]


def _mean(values: Iterable[int | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
