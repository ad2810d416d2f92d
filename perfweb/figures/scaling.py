# SPDX-License-Identifier: BSD-2-Clause
"""Scaling of variants: a simulated workload over the numbers of virtual CPUs of a run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfweb.figures.graphs import Graph
from perfweb.figures.plots import scaling_figure
from perfweb.stats.usl import Overtaking, Scalability, fit, overtakings
from perfweb.verdicts.numbers import scale_for
from perfweb.verdicts.results import Series, TestResults

FEWEST = 3
"""Numbers of CPUs that can be seen, and fitted, as a curve."""

_WORKLOAD = re.compile(r"(?P<workload>simulated\.[a-z]+)\.(?P<cpus>\d+)/.*")


@dataclass(frozen=True)
class Climber:
    """A variant with its best fit of the Universal Scalability Law, None without one."""

    variant: str
    law: Scalability | None

    @property
    def peak(self) -> int | None:
        """The number of CPUs after which it falls, None if it does not up to a thousand."""
        return round(self.law.peak) if self.law and self.law.peak <= 1000 else None


@dataclass(frozen=True)
class Ladder:
    """A workload over the number of CPUs: its graph, the law of each variant, and the crossovers."""

    workload: str
    graph: Graph
    climbers: list[Climber]
    overtakings: list[Overtaking]


def ladders(tests: Sequence[TestResults]) -> list[Ladder]:
    """Return the workloads that these tests have on FEWEST numbers of CPUs or more."""
    found: dict[str, dict[int, TestResults]] = {}
    for test in tests:
        if (name := _WORKLOAD.fullmatch(test.name)) and any(series.samples for series in test.primary):
            found.setdefault(name["workload"], {})[int(name["cpus"])] = test
    return [_ladder(workload, by_cpus) for workload, by_cpus in found.items() if len(by_cpus) >= FEWEST]


def _ladder(workload: str, by_cpus: Mapping[int, TestResults]) -> Ladder:
    lines: dict[str, dict[int, list[float]]] = {}
    for cpus, test in by_cpus.items():
        for series in test.primary:
            if series.samples:
                lines.setdefault(series.variant.name, {})[cpus] = series.samples
    rates = {name: {cpus: sum(some) / len(some) for cpus, some in line.items()} for name, line in lines.items()}
    unit = _any_series(by_cpus).unit
    scale = scale_for(unit, max(max(line.values()) for line in rates.values()))
    label = f"{workload} over the number of virtual CPUs"
    graph = Graph(f"scaling-{workload.replace('.', '-')}", label, scaling_figure(lines, scale))
    return Ladder(workload, graph, [Climber(name, _law(line)) for name, line in rates.items()], overtakings(rates))


def _any_series(by_cpus: Mapping[int, TestResults]) -> Series:
    return next(iter(by_cpus.values())).primary[0]


def _law(rates: Mapping[int, float]) -> Scalability | None:
    try:
        return fit(rates)
    except ValueError:
        return None
