# SPDX-License-Identifier: BSD-2-Clause
"""Reads downloaded samples: the file samples.csv of a run."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

COLUMNS = ("variant", "boot", "test", "metric", "value", "unit", "direction", "discarded", "measurement_state")
MOST_SAMPLES = 5_000_000
LONGEST_NAME = 200

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@dataclass
class Metric:
    """The counted samples of one metric of one test: by variant, in the order of the file, one list for each boot.

    `primary` is whether comparisons use it; older files do not have it, and then it is True. `seeds` are those of the
    simulated machine, one for each boot, None without one.
    """

    test: str
    metric: str
    unit: str
    direction: str
    primary: bool
    variants: dict[str, list[list[float]]] = field(default_factory=dict)
    seeds: dict[str, list[int | None]] = field(default_factory=dict)

    def by_seed(self, variant: str) -> dict[int, list[float]]:
        """The samples of a variant by seed; empty unless each of its boots has one."""
        found: dict[int, list[float]] = {}
        for seed, boot in zip(self.seeds[variant], self.variants[variant], strict=True):
            if seed is None:
                return {}
            found.setdefault(seed, []).extend(boot)
        return found


def read_samples(path: Path) -> list[Metric]:
    """Return the samples of each metric of each test in a run's samples.csv, in the order of the file.

    Samples that were discarded, are void, or belong to a sentinel or a failed measurement are left out, as everywhere
    in statistics; older files do not mark void ones and sentinels. Raises ValueError for a file that is not such a
    table, naming the line.
    """
    with path.open(encoding="utf-8", newline="") as lines:
        return parse_samples(lines, str(path))


def parse_samples(lines: Iterable[str], name: str) -> list[Metric]:
    """Read the lines of such a table, named `name` in errors."""
    found: dict[tuple[str, str], Metric] = {}
    boots: dict[tuple[str, ...], list[float]] = {}
    table = csv.DictReader(lines)
    try:
        if missing := set(COLUMNS) - set(table.fieldnames or ()):
            raise ValueError(f"{name} has no column {min(missing)}: it should be the samples.csv of a run")
        for row in _counted(table):
            test, known, variant, unit = (_plain(row[column]) for column in ("test", "metric", "variant", "unit"))
            primary = row.get("primary", "true") == "true"
            metric = found.setdefault((test, known), Metric(test, known, unit, _direction(row), primary))
            place = (test, known, variant, row["boot"], row.get("attempt", ""))
            if place not in boots:
                boots[place] = []
                metric.variants.setdefault(variant, []).append(boots[place])
                metric.seeds.setdefault(variant, []).append(_seed(row.get("seed", "")))
            boots[place].append(_value(row["value"]))
    except (_CellError, csv.Error) as error:
        raise ValueError(f"{name}, line {table.line_num}: {error}") from None
    return list(found.values())


class _CellError(ValueError):
    """An invalid cell."""


def _counted(table: csv.DictReader[str]) -> Iterator[dict[str, str]]:
    """The rows that enter statistics."""
    for number, row in enumerate(table):
        if number == MOST_SAMPLES:
            raise _CellError(f"there are more than {MOST_SAMPLES} samples")
        if None in row or None in row.values():
            raise _CellError("this row has not as many cells as there are columns")
        good = row["discarded"] == "false" and row["measurement_state"] == "ok" and not row.get("void")
        if good and row.get("sentinel") != "true":
            yield row


def _plain(text: str) -> str:
    """Remove the apostrophe that keeps spreadsheets from treating a text as a formula."""
    if len(text) > LONGEST_NAME or _CONTROL.search(text):
        raise _CellError(f"{text[:40]!r} is too long for a name, or has control characters")
    return text.removeprefix("'")


def _direction(row: dict[str, str]) -> str:
    if row["direction"] not in {"higher", "lower"}:
        raise _CellError(f"{row['direction'][:40]!r} is no direction: better is higher or lower")
    return row["direction"]


def _seed(text: str) -> int | None:
    if not re.fullmatch(r"[0-9]{0,9}", text):
        raise _CellError(f"{text[:40]!r} is no seed: it is a whole number below 1000000000")
    return int(text) if text else None


def _value(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise _CellError(f"{text[:40]!r} is no number") from None
    if not math.isfinite(value):
        raise _CellError(f"{text[:40]!r} is not finite")
    return value
