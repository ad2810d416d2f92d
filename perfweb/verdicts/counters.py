# SPDX-License-Identifier: BSD-2-Clause
"""Reports of booted systems, and their counters in columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from perfweb.runs.models import Artefact, ArtefactKind
from perfweb.verdicts.sides import Side

MOST_ROWS = 25
AT_START, AT_END = "tunables", "sysctl"
"""The views with all names and values of a system after boot, and at the end."""

_LINE = re.compile(r"([A-Za-z_][\w.%-]{0,127}): (-?\d{1,18})", re.ASCII)


@dataclass(frozen=True)
class CounterRow:
    """One counter: its mean per boot on each side, None without a value."""

    name: str
    means: list[float | None]

    @property
    def spread(self) -> float:
        """The max ratio between two sides, as a number that grows with the difference."""
        known = [mean for mean in self.means if mean is not None]
        return (max(known) + 1) / (min(known) + 1) if len(known) > 1 else 0.0


def read_counters(text: str) -> dict[str, int]:
    """Read lines `name: number` as `sysctl -a` prints them; other lines (words, strings) are no counters."""
    found = (_LINE.fullmatch(line.strip()) for line in text.splitlines())
    return {match[1]: int(match[2]) for match in found if match}


def reports_of(sides: Sequence[Side], views: Iterable[str]) -> dict[str, list[list[str]]]:
    """Read the reports of each side's boots, by view: one query."""
    side_of = {variant.pk: place for place, side in enumerate(sides) for variant in side.variants}
    reports: dict[str, list[list[str]]] = {view: [[] for _ in sides] for view in views}
    texts = Artefact.objects.filter(
        kind__in=[ArtefactKind.TUNABLES, ArtefactKind.COUNTERS],
        name__regex=rf"/(counters-)?({'|'.join(reports)})\.txt$",
        boot__variant__in=side_of,
        boot__sentinel=False,
    ).values_list("boot__variant_id", "name", "content")
    for variant, name, content in texts:
        view = name.rpartition("/")[2].removeprefix("counters-").removesuffix(".txt")
        reports[view][side_of[variant]].append(bytes(content).decode("utf-8", "replace"))
    return reports


def counter_rows(reports: Mapping[str, Sequence[Sequence[str]]]) -> list[CounterRow]:
    """List the counters that differ most between sides, at most MOST_ROWS; each view has the texts of each side's
    boots. Values that did not change during a boot are left out, because they are settings or unused counters.
    """
    started, ended = (_means(reports[view]) for view in (AT_START, AT_END))
    unknown = [None] * len(reports[AT_END])
    counted = (name for name, means in ended.items() if _moved(started.get(name, unknown), means))
    rows = [CounterRow(name, ended[name]) for name in sorted(counted)]
    differing = [row for row in rows if row.spread > 1 and min(mean or 0 for mean in row.means) >= 0]
    return sorted(differing, key=lambda row: -row.spread)[:MOST_ROWS]


def _moved(started: Sequence[float | None], ended: Sequence[float | None]) -> bool:
    return any(after is not None and after != before for before, after in zip(started, ended, strict=True))


def _means(reports: Sequence[Sequence[str]]) -> dict[str, list[float | None]]:
    """The mean per boot of each counter on each side."""
    sides = [[read_counters(text) for text in boots] for boots in reports]
    names = {name for boots in sides for boot in boots for name in boot}
    return {name: [_mean(boot.get(name) for boot in boots) for boots in sides] for name in names}


def _mean(values: Iterable[int | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
