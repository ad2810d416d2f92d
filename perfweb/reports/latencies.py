# SPDX-License-Identifier: BSD-2-Clause
"""How long single transactions or probes take: the percentiles that netperf tells with each sample of a test of
requests and responses, and netblast at each of several loads.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from django.contrib.postgres.aggregates import ArrayAgg

from perfweb.reports.figures import Figure, drawn, series_look, slots_axis
from perfweb.reports.sides import Side
from perfweb.runs.catalogue import LOADS
from perfweb.runs.models import Sample

PERCENTILES = {
    "latency.min": "least",
    "latency.p50": "50 %",
    "latency.p90": "90 %",
    "latency.p99": "99 %",
    "latency.max": "greatest",
}
"""Metrics in microseconds, and which share of the transactions took no longer."""

OFFERED, DELIVERED = "offered", "delivered"
"""Packets/s of a load, and the percentage of its probes that came back."""

DRAWN = {"latency.p90": "90 %", "latency.p50": "50 %"}
"""Percentiles that are drawn over the load, a line for each side: the one that is compared, and what is typical."""

AT_LOADS = [f"{metric}.{load}" for metric in (*PERCENTILES, OFFERED, DELIVERED) for load in LOADS]


@dataclass(frozen=True)
class Latencies:
    """The latencies of one test: for each side that has some, the values of its samples by metric."""

    sides: Mapping[str, Mapping[str, Sequence[float]]]

    @cached_property
    def loads(self) -> list[str]:
        """Percentages of the highest rate without loss at which they were taken; none where there is one load only."""
        return [load for load in LOADS if any(f"{OFFERED}.{load}" in found for found in self.sides.values())]

    @property
    def of(self) -> str:
        """What it was that took so long."""
        return "probes" if self.loads else "transactions"

    @property
    def caption(self) -> str:
        one = "a probe beside a load" if self.loads else "a transaction"
        return f"Latency of {one} in µs, median over the samples"

    @property
    def metrics(self) -> list[str]:
        """The metrics that any side has, at whatever load, the fastest transactions first."""
        ends = [f".{load}" for load in self.loads] or [""]
        return [
            name for name in PERCENTILES if any(name + end in found for found in self.sides.values() for end in ends)
        ]

    @property
    def heads(self) -> list[str]:
        told = ["load, %", "packets/s", "came back, %"] if self.loads else []
        return [*told, *(PERCENTILES[name] for name in self.metrics)]

    @property
    def rows(self) -> list[tuple[str, list[float | None]]]:
        """Each side, at each load, with the median over its samples of each metric."""
        return [
            (label, [*_told(found, load), *(_median(found, name, load) for name in self.metrics)])
            for label, found in self.sides.items()
            for load in self.loads or [""]
        ]


def _told(found: Mapping[str, Sequence[float]], load: str) -> list[float | None]:
    """What a load was."""
    return [float(load), _median(found, OFFERED, load), _median(found, DELIVERED, load)] if load else []


def _median(found: Mapping[str, Sequence[float]], name: str, load: str) -> float | None:
    values = found.get(f"{name}.{load}" if load else name)
    return statistics.median(values) if values else None


def read_latencies(sides: Sequence[Side], tests: Iterable[str]) -> dict[str, Latencies]:
    """Read the latencies that the sides have in tests: one query."""
    side_of = {variant.pk: side.label for side in sides for variant in side.variants}
    rows = (
        Sample.objects.filter(measurement__boot__variant__in=side_of, measurement__test__in=list(tests))
        .valid()
        .filter(metric__in=[*PERCENTILES, *AT_LOADS], value__gt=0)
        .order_by()
        .values_list("measurement__boot__variant_id", "measurement__test", "metric")
        .annotate(values=ArrayAgg("value"))
    )
    found: dict[str, dict[str, dict[str, list[float]]]] = {}
    for variant, test, metric, values in rows:
        of_test = found.setdefault(test, {side.label: {} for side in sides})
        of_test[side_of[variant]].setdefault(metric, []).extend(values)
    made = {test: Latencies({label: one for label, one in of_test.items() if one}) for test, of_test in found.items()}
    return {test: latencies for test, latencies in made.items() if latencies.metrics}


def latency_figure(latencies: Latencies, labels: Sequence[str]) -> Figure:
    """Draw each sample's percentiles on a logarithmic scale, with a line through the medians: over the load where there
    are several, or side by side.

    `labels` are those of all sides of the page, whose colours and markers stay theirs.
    """
    if latencies.loads:
        return _loads_figure(latencies, labels)
    traces = []
    for number, values, style in drawn(latencies.sides, labels):
        known = [(slot + (number + 0.5) / len(labels), name) for slot, name in enumerate(latencies.metrics)]
        known = [(x, name) for x, name in known if name in values]
        look = {**style, "type": "scatter", "hovertemplate": "%{y} µs"}
        medians = [statistics.median(values[name]) for _, name in known]
        line = {"dash": "dash"} if number % 2 else {}
        points = [(x, value) for x, name in known for value in values[name]]
        traces.append({**look, "mode": "lines", "x": [x for x, _ in known], "y": medians, "line": line})
        traces.append({**look, "mode": "markers", "x": [x for x, _ in points], "y": [y for _, y in points]})
    return {
        "data": traces,
        "layout": {
            "height": 260,
            "xaxis": slots_axis(latencies.heads, "share of the transactions that took no longer"),
            "yaxis": {"type": "log", "title": {"text": "µs"}},
        },
    }


def _loads_figure(latencies: Latencies, labels: Sequence[str]) -> Figure:
    """Draw two percentiles of each side over what it was offered, which is another rate for each side: shares of its
    own highest without loss. Samples stand where the median of their load does.
    """
    traces = []
    for number, values, _ in drawn(latencies.sides, labels):
        for place, (metric, name) in enumerate(DRAWN.items()):
            points = [
                (rate, values[key])
                for load in latencies.loads
                if (key := f"{metric}.{load}") in values and (rate := _median(values, OFFERED, load)) is not None
            ]
            look = {**series_look(number, labels[number]), "type": "scatter", "hovertemplate": f"{name}: %{{y}} µs"}
            if place:
                look["marker"]["symbol"] += "-open"
            line = {"dash": "dash"} if place else {}
            medians = [statistics.median(some) for _, some in points]
            spread = [(rate, value) for rate, some in points for value in some]
            traces.append({**look, "mode": "lines", "x": [x for x, _ in points], "y": medians, "line": line})
            traces.append({**look, "mode": "markers", "x": [x for x, _ in spread], "y": [y for _, y in spread]})
    return {
        "data": [trace for trace in traces if trace["y"]],
        "layout": {
            "height": 300,
            "xaxis": {"title": {"text": "packets/s that were offered"}, "rangemode": "tozero"},
            "yaxis": {"type": "log", "title": {"text": "µs: 90 % full, 50 % dashed"}},
        },
    }
