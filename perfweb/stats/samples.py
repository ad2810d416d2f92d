# SPDX-License-Identifier: BSD-2-Clause
"""Reads downloaded samples: the file samples.csv of a run."""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from pathlib import Path

COLUMNS = ("variant", "boot", "test", "metric", "value", "unit", "direction", "discarded", "measurement_state")


@dataclass
class Metric:
    """The counted samples of one metric of one test: by variant, in the order of the file, one list for each boot."""

    test: str
    metric: str
    unit: str
    direction: str
    variants: dict[str, list[list[float]]] = field(default_factory=dict)


def read_samples(path: Path) -> list[Metric]:
    """Return what a run's samples.csv says about each metric of each test, in the order of the file.

    Samples that were discarded or belong to a measurement that failed are left out, as everywhere in statistics.
    Raises ValueError for a file that is not such a table, naming the line.
    """
    found: dict[tuple[str, str], Metric] = {}
    boots: dict[tuple[str, ...], list[float]] = {}
    with path.open(encoding="utf-8", newline="") as lines:
        table = csv.DictReader(lines)
        if missing := set(COLUMNS) - set(table.fieldnames or ()):
            raise ValueError(f"{path} has no column {min(missing)}: it should be the samples.csv of a run")
        for row in table:
            if row["discarded"] != "false" or row["measurement_state"] != "ok":
                continue
            key = row["test"], row["metric"]
            metric = found.setdefault(key, Metric(*key, row["unit"], row["direction"]))
            place = (*key, row["variant"], row["boot"], row.get("attempt", ""))
            if place not in boots:
                boots[place] = []
                metric.variants.setdefault(row["variant"], []).append(boots[place])
            try:
                boots[place].append(float(row["value"]))
            except (TypeError, ValueError):
                raise ValueError(f"{path}, line {table.line_num}: {row['value']!r} is no number") from None
    return list(found.values())
